"""Models ranked among judged items, and measures of judged items, against lists of all items."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import judged_oracle as plain
import numpy as np
import oracle
import pytest
from commands import Command
from hypothesis import given, settings
from hypothesis import strategies as st
from implicit.nearest_neighbours import CosineRecommender
from implicit.utils import ParameterWarning
from merge_cases import every_metric
from raising import raises, warns
from scipy import sparse
from ways_cases import of_users_with_relevant

import sparse_eval as se
from sparse_eval.errors import InvalidMetricError, UnsupportedModelError
from sparse_eval.metrics.conventions import CONVENTIONS
from sparse_eval.metrics.request import Request
from sparse_eval.models import source as model_source

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

CUT = ["ndcg@3", "recall@2", "bpref@4", "judged@3", "infap@3"]
WHOLE = ["auc", "mrr", "bpref", "infap", "ndcg", "set_f"]


class Sides:
    """Scores, what is seen, and judgements; plain lists of all unseen items, best first."""

    def __init__(self, seed: int, allowed: bool = False) -> None:
        rng = np.random.default_rng(seed)
        n_users, n_items = 12, int(rng.integers(8, 30))
        self.users = rng.normal(size=(n_users, 3)).astype(np.float32)
        self.items = rng.normal(size=(n_items, 3)).astype(np.float32)
        seen = rng.random((n_users, n_items)) < 0.2
        stored = (rng.random((n_users, n_items)) < 0.4) & (allowed | ~seen)
        stored[-1] = False  # nothing is judged
        gains = stored * rng.choice([0, 0, 1, 2], size=stored.shape)
        gains[-2] = 0  # and nothing is relevant
        stored[0, seen[0].argmin()] = True
        gains[0, seen[0].argmin()] = 1
        self.seen = sparse.csr_matrix(seen.astype(np.float64))
        rows, columns = np.nonzero(stored)
        self.truth = sparse.csr_matrix((gains[stored].astype(np.float64), (rows, columns)),
                                       stored.shape)  # fmt: skip
        self.judged = [
            {int(i): float(gains[user, i]) for i in np.flatnonzero(stored[user])}
            for user in range(n_users)
        ]
        scores = self.users.astype(np.float64) @ self.items.astype(np.float64).T
        self.ranked = [
            {int(item): rank for rank, item in enumerate(np.argsort(-np.where(
                seen[user] & (not allowed), -np.inf, scores[user]), kind="stable"
            )[: n_items - (0 if allowed else int(seen[user].sum()))], 1)}
            for user in range(n_users)
        ]  # fmt: skip

    def expected(self, metric: str, judged_only: bool) -> list[float]:
        name, _, cut = metric.partition("@")
        k = int(cut) if cut else None
        values = []
        for ranked, gains in zip(self.ranked, self.judged, strict=True):
            own = plain.condensed(ranked, gains) if judged_only else ranked
            if name in oracle.OPTIONS:
                context = oracle.Context(
                    n_items=self.truth.shape[1],
                    among=set(gains) if judged_only else set(ranked),
                    list_length=len(own),
                )
                values.append(oracle.value(name, {}, k, own, gains, context))
            else:
                values.append(plain.value(name, "", k or math.inf, own, gains))
        return values


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.booleans(), st.booleans())
def test_every_way_equals_lists_of_all_items(seed: int, judged_only: bool, allowed: bool) -> None:
    sides = Sides(seed, allowed)
    data = ((sides.users, sides.items), sides.seen, sides.truth)
    with (
        mock.patch.object(model_source, "users_within", return_value=5),
        ThreadPoolExecutor(2) as pool,
    ):
        for metrics in (CUT, WHOLE):
            ways: list[dict[str, Any]] = [
                {"baselines": True},
                {"keep": "totals"},
                {"memory": 1 << 28, "baselines": True},
                {"client": pool},
            ]
            if metrics is CUT:
                ways.append({"keep": "lists", "baselines": True})
            rules = se.Protocol(metrics, judged_only=judged_only, filter_seen=not allowed)
            evs = [se.evaluate_model(*data, rules, **way) for way in ways]
            for ev in evs:
                assert ev.mean() == evs[0].mean()
                assert ev.summary()["random"].equals(evs[0].summary()["random"])
                if ev.baselines:
                    popular = ev.baselines["popularity"].mean()
                    assert popular == evs[0].baselines["popularity"].mean()
            for metric in metrics:
                expected = sides.expected(metric, judged_only)
                np.testing.assert_allclose(evs[0].values(metric), expected, rtol=1e-12)


def test_popularity_is_ranked_among_judged_items() -> None:
    sides = Sides(0)
    data = ((sides.users, sides.items), sides.seen, sides.truth)
    for judged_only in (True, False):
        protocol = se.Protocol(CUT, judged_only=judged_only)
        ev = se.evaluate_model(*data, protocol, baselines=True)
        n_items = sides.truth.shape[1]
        lists = se.Rankings.from_popularity(sides.seen, k=n_items)
        expected = se.evaluate(lists, sides.truth, protocol, train=sides.seen)
        assert ev.baselines["popularity"].mean() == expected.mean()
        assert ev.summary()["random"].tolist() == pytest.approx(expected.summary()["random"])


def allowed_metrics(convention: str | None, metrics: list[str]) -> list[str]:
    """Return the metrics that a convention has in this form."""

    def is_allowed(metric: str) -> bool:
        try:
            protocol = se.Protocol(metric, convention=convention, judged_only=True)
            Request.parse(protocol, inputs=("train",))
        except InvalidMetricError:
            return False
        return True

    return [metric for metric in metrics if is_allowed(metric)]


@pytest.mark.slow
@pytest.mark.parametrize("judged_only", [True, False])
@pytest.mark.parametrize("without_list", [None, "exclude", "zero"])
@pytest.mark.parametrize(
    "conventions",
    [
        pytest.param([None, "trec_eval"], id="some"),
        pytest.param(sorted(CONVENTIONS), id="every", marks=pytest.mark.long),
    ],
)
def test_models_and_their_lists_count_the_same_users(
    judged_only: bool, without_list: Any, conventions: list[str | None]
) -> None:
    sides = Sides(4)
    relevant = sides.truth.copy()
    relevant.data[relevant.indptr[1] : relevant.indptr[2]] = 1.0
    seen = sides.seen.tolil()
    seen[1] = relevant[1]  # no judged item can be listed
    seen[2] = 1.0  # no item can be listed
    seen = seen.tocsr()
    assert relevant[1].nnz > 0
    assert relevant[2].sum() > 0
    model = (sides.users, sides.items)
    n_items = relevant.shape[1]
    lists = se.Rankings.from_topk(se.top_k(model, n_items, seen=seen).ids)
    popular = se.Rankings.from_popularity(seen, k=n_items)
    lists, popular = (of_users_with_relevant(side, relevant) for side in (lists, popular))
    stated = se.Relevance.from_csr(relevant, threshold=1)  # zeros that no convention counts
    cut = [metric for metric in every_metric(train=seen) if "@" in metric]
    whole = sorted({*WHOLE, *every_metric(train=seen)} - {*cut})
    compared = 0
    with (
        mock.patch.object(model_source, "users_within", return_value=5),
        ThreadPoolExecutor(2) as pool,
    ):
        for convention, metrics in product(conventions, (cut, whole)):
            asked = allowed_metrics(convention, metrics)
            if not asked:
                continue
            protocol = se.Protocol(
                asked, convention=convention, without_list=without_list, judged_only=judged_only
            )
            expected, baseline = (
                se.evaluate(side, stated, protocol, train=seen) for side in (lists, popular)
            )
            ways: list[dict[str, Any]] = [{}, {"memory": 1 << 28}, {"client": pool}]
            ways += [{"keep": "lists"}] if metrics is cut else []
            for way in ways:
                ev = se.evaluate_model(model, seen, stated, protocol, baselines=True, **way)
                for found, by_lists in ((ev, expected), (ev.baselines["popularity"], baseline)):
                    np.testing.assert_equal(found.mean(), by_lists.mean(), err_msg=str(protocol))
                    assert found.n_users == by_lists.n_users
                    assert found.n_users_of == by_lists.n_users_of
                    assert found.n_without_list == by_lists.n_without_list
                    compared += len(asked)
    assert compared > 800


def test_refuses_models_that_cannot_rank_them() -> None:
    sides = Sides(1)
    model = CosineRecommender(K=5)
    with pytest.warns(ParameterWarning):  # of what implicit passes to itself
        model.fit(sides.seen, show_progress=False)
    with raises(UnsupportedModelError):
        se.evaluate_model(model, sides.seen, sides.truth, se.Protocol("ndcg@3", judged_only=True))
    ev = se.evaluate_model(model, sides.seen, sides.truth, "judged@3")  # of lists, which it has
    assert 0 < ev["judged@3"] < 1


def test_warns_if_nothing_was_judged_to_be_not_relevant() -> None:
    sides = Sides(2)
    truth = sides.truth.copy()
    truth.eliminate_zeros()
    with warns():
        se.evaluate_model(
            (sides.users, sides.items), sides.seen, truth, se.Protocol("ndcg@3", judged_only=True)
        )


def shown_and_clicked() -> se.Holdout:
    """A split whose validation part stores items that were shown and not clicked, as MIND's."""
    clicks = se.datasets.synthetic(n_users=60, n_items=40, n_interactions=900, seed=0)
    holdout = se.split.random(clicks, seed=0)
    rng = np.random.default_rng(0)
    free = ~((holdout.train + holdout.validation).toarray() > 0)
    shown = sparse.csr_matrix(free & (rng.random(free.shape) < 0.2)).astype(np.float64)
    both = holdout.validation.tocoo(), shown.tocoo()
    rows, columns = (np.concatenate([getattr(p, a) for p in both]) for a in ("row", "col"))
    data = np.concatenate((both[0].data, np.zeros(shown.nnz)))
    validation = sparse.csr_matrix((data, (rows, columns)), free.shape)
    return se.Holdout(holdout.train, validation, holdout.users, holdout.items)


def test_whatever_evaluates_models_takes_it(tmp_path: Path, command: Command) -> None:
    holdout = shown_and_clicked()
    sides = (holdout.train, holdout.validation)
    protocol = se.Protocol("ndcg@5", judged_only=True)
    model = se.train_als(holdout.train, factors=4, iterations=3)
    expected = se.evaluate_model(model, *sides, protocol)["ndcg@5"]
    assert expected != se.evaluate_model(model, *sides, "ndcg@5")["ndcg@5"]

    se.save_model(model, tmp_path / "als.npz", users=holdout.users, items=holdout.items)
    table = se.sweep(tmp_path / "als.npz", *sides, protocol, out=tmp_path / "sweep")
    assert table["ndcg@5 (judged)"].tolist() == [expected]
    with raises(se.errors.InvalidFileError):
        se.sweep(tmp_path / "als.npz", *sides, "ndcg@5", out=tmp_path / "sweep")

    callback = se.EvaluationCallback(*sides, protocol)
    se.train_als(holdout.train, factors=4, iterations=3, callback=callback)
    assert callback.history["ndcg@5 (judged)"].iloc[-1] == expected
    tuning = se.tune(*sides, protocol, space={"factors": 4, "iterations": 3})
    assert tuning.trials["ndcg@5 (judged)"].tolist() == [callback.history["ndcg@5 (judged)"].max()]
    models = {"als": {"factors": 4, "iterations": 3}}
    cv = se.cross_validate(None, models, protocol, splits=[holdout], seeds=[0], out=tmp_path / "cv")
    assert "ndcg@5 (judged)" in str(cv)
    assert se.CrossValidation.load(tmp_path / "cv").request.judged_only

    holdout.save(tmp_path / "split")
    words = ["score", tmp_path / "als.npz", "--split", tmp_path / "split", "-m", "ndcg@5"]
    status, printed, _ = command(*words, "--judged-only")
    assert status == 0
    assert "ndcg@5 (judged)" in printed
