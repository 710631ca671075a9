"""Candidates crossed with every other option, against scores that are sorted user by user."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import sparse_eval as se
from sparse_eval.models import source as model_source

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

WHOLE = ["auc", "mean_rank", "percentile_rank(gain=binary)", "mrr", "ndcg", "recall@2", "ndcg@3"]
SHORT = ["hit_rate@2", "ndcg@3", "mrr@3", "recall@1"]


def parsed(metric: str) -> tuple[str, dict[str, str], int | None]:
    head, _, k = metric.partition("@")
    name, _, option = head.rstrip(")").partition("(")
    options = dict([option.split("=")]) if option else {}
    return name, options, int(k) if k else None


class Plain:
    """The values of each user by their definitions: `scores`, `seen`, `among` and gains `held`."""

    def __init__(self, scores: Any, seen: Any, among: Any, held: Any, allowed: bool) -> None:
        self.held, self.among = held, among
        self.seen = np.zeros_like(seen) if allowed else seen
        self.lists = []
        for user, row in enumerate(scores):
            pool = np.flatnonzero(among[user] & ~self.seen[user])
            self.lists.append(pool[np.lexsort((pool, -row[pool]))].tolist())

    def values(self, metric: str) -> list[float]:
        name, options, k = parsed(metric)
        values = []
        for user, items in enumerate(self.lists):
            context = oracle.Context(
                n_items=self.held.shape[1],
                seen=frozenset(np.flatnonzero(self.seen[user]).tolist()),
                list_length=len(items),
                among=frozenset(np.flatnonzero(self.among[user]).tolist()),
            )
            gains = {
                int(item): float(self.held[user, item]) for item in np.flatnonzero(self.held[user])
            }
            ranked = {item: rank for rank, item in enumerate(items, 1)}
            values.append(oracle.value(name, options, k, ranked, gains, context))
        return values

    def check(self, ev: se.Evaluation) -> None:
        for metric in ev.names:
            values = self.values(metric)
            defined = [value for value in values if not math.isnan(value)]
            assert ev[metric] == pytest.approx(
                np.mean(defined) if defined else math.nan, nan_ok=True
            )
            if ev.has_lists:
                assert ev.per_user[metric].tolist() == pytest.approx(values, nan_ok=True)


def check_every_way(
    model: Any, data: Any, plain: Plain, popular: Plain, candidates: Any, *, filter_seen: bool
) -> None:
    """Compare every way of each list of metrics, and the popularity ranking beside it."""
    with (
        mock.patch.object(model_source, "users_within", return_value=2),
        ThreadPoolExecutor(2) as pool,
    ):
        for metrics in (WHOLE, SHORT):
            protocol = se.Protocol(metrics, filter_seen=filter_seen)
            options: dict[str, Any] = {"candidates": candidates, "baselines": True}
            evs = [
                se.evaluate_model(model, *data, protocol, **options, **more)
                for more in (
                    {},
                    {"keep": "totals"},
                    {"memory": 1 << 28},
                    {"memory": 1 << 28, "keep": "totals"},
                    {"client": pool},
                    {"client": pool, "keep": "totals", "memory": 1 << 28},
                )
            ]
            if metrics is SHORT:
                evs.append(se.evaluate_model(model, *data, protocol, keep="lists", **options))
            for ev in evs:
                plain.check(ev)
                popular.check(ev.baselines["popularity"])
                assert str(ev.mean()) == str(evs[0].mean())
                assert ev.summary()["random"].equals(evs[0].summary()["random"])
                assert ev.candidates == evs[0].candidates


def draw_sides(rng: Any, n_users: int, n_items: int) -> tuple[Any, Any, Any]:
    """Draw what is seen, what is held out, some of it seen too, and candidates."""
    seen = rng.random((n_users, n_items)) < 0.3
    held = (rng.random((n_users, n_items)) < 0.25) * rng.integers(1, 3, (n_users, n_items))
    held[0, seen[0].argmin()] = 1
    among = rng.random((n_users, n_items)) < rng.choice([0.3, 0.9])
    among[0] |= held[0] > 0
    return seen, held, among


@settings(max_examples=12)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["factors", "matrix", "function"]),
    st.sampled_from(["mask", "for all"]),
    st.booleans(),
)
def test_every_kind_of_model(seed: int, kind: str, form: str, allowed: bool) -> None:
    rng = np.random.default_rng(seed)
    n_users, n_items = int(rng.integers(1, 7)), int(rng.integers(3, 14))
    seen, held, among = draw_sides(rng, n_users, n_items)
    if not allowed:
        held[seen] = 0
        if not held[0].any():
            return
    if form == "for all":
        among[:] = among[0]
    train = sparse.csr_matrix(seen.astype(float))
    factors = rng.integers(-2, 3, (n_users, 3)), rng.integers(-2, 3, (n_items, 3))
    weights = rng.integers(-2, 3, (n_items, n_items)).astype(float)
    scores = seen @ weights if kind == "matrix" else factors[0] @ factors[1].T
    model: Any = {
        "factors": tuple(side.astype(np.float32) for side in factors),
        "matrix": se.Scorer(item_item=weights),
        "function": lambda users: scores[users].astype(float),
    }[kind]
    candidates = sparse.csr_matrix(among) if form == "mask" else np.flatnonzero(among[0])
    check_every_way(
        model,
        (train, sparse.csr_matrix(held.astype(float))),
        Plain(scores, seen, among, held, allowed),
        Plain(np.tile(seen.sum(axis=0), (n_users, 1)), seen, among, held, allowed),
        candidates,
        filter_seen=not allowed,
    )


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("form", ["matrix", "mapping", "sampled"])
def test_users_who_are_folded_in(allowed: bool, form: str) -> None:
    clicks = se.datasets.synthetic(n_users=60, n_items=40, n_interactions=600, seed=2)
    holdout = se.split.users(clicks, fraction=0.3, fold_in=0.6, seed=1)
    model = se.train_als(holdout.train, factors=4, iterations=2)
    users, items = se.fold_in(model, holdout)[:2]
    of_new = np.diff(holdout.fold_in.indptr) > 0  # type: ignore[union-attr]
    factors = np.where(of_new[:, None], users, model.user_factors).astype(float)
    scores = factors @ np.asarray(items, float).T
    rng = np.random.default_rng(0)
    among = (rng.random(scores.shape) < 0.4) | (holdout.validation.toarray() > 0)
    if form == "sampled":
        candidates: Any = se.sample_negatives(holdout, n=5)
        among = candidates.to_csr().toarray() > 0
    elif form == "mapping":
        assert holdout.users is not None
        assert holdout.items is not None
        candidates = {
            user: holdout.items[row].tolist()
            for user, row in zip(holdout.users, among, strict=True)
        }
    else:
        candidates = sparse.csr_matrix(among)
    seen, held = holdout.seen.toarray() != 0, holdout.validation.toarray()
    counts = np.tile(seen.sum(axis=0), (len(scores), 1))
    check_every_way(
        model,
        (holdout, None),
        Plain(scores, seen, among, held, allowed),
        Plain(counts, seen, among, held, allowed),
        candidates,
        filter_seen=not allowed,
    )
