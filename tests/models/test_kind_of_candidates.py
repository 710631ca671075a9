"""Only candidates drawn next to the relevant items are called sampled, in every form."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

N_USERS, N_ITEMS, N_CANDIDATES, COUNTRIES = 60, 240, 80, 3

FORMS = ["csr", "relevance", "frame", "mapping", "lists", "path"]
KINDS = {
    "one negative list each": "1+79",
    "several relevant": "n+79",
    "country": "candidates",
    "everybody": "candidates",
    "country without some relevant": "candidates",
    "some relevant missing": "candidates",
    "other sizes": "candidates",
}


def problem(kind: str) -> tuple[Any, Any, Any]:
    """Return the seen items, held-out items and candidates of users, as booleans."""
    rng = np.random.default_rng(0)
    country = np.arange(N_USERS) % (1 if kind == "everybody" else COUNTRIES)
    seen, held, among = np.zeros((3, N_USERS, N_ITEMS), bool)
    for user in range(N_USERS):
        at_home = np.arange(N_CANDIDATES) + country[user] * N_CANDIDATES
        bought = rng.permutation(at_home)[:10]
        seen[user, bought[2:]] = True
        held[user, bought[: 2 if kind == "several relevant" and user % 2 else 1]] = True
        if kind.startswith(("country", "everybody")):
            among[user, at_home] = True
            continue
        others = np.flatnonzero(~held[user] & ~seen[user])
        n = N_CANDIDATES - (2 if kind == "other sizes" and user == 7 else 1)
        among[user, rng.permutation(others)[:n]] = True
        among[user] |= held[user]
    if kind == "country without some relevant":
        for user in range(0, N_USERS, 2):
            held[user] = np.arange(N_ITEMS) == (country[user] + 1) % COUNTRIES * N_CANDIDATES
    if kind == "some relevant missing":
        among[5] &= ~held[5]
    return seen, held, among


def in_form(among: Any, form: str, folder: Path) -> Any:
    matrix = sparse.csr_matrix(among.astype(float))
    rows = [np.flatnonzero(row).tolist() for row in among]
    if form == "relevance":
        return se.Relevance.from_csr(matrix)
    if form == "frame":
        users, items = np.nonzero(among)
        return pd.DataFrame({"user": users, "item": items})
    if form == "mapping":
        return dict(enumerate(rows))
    if form == "lists":
        return rows
    if form == "path":
        sparse.save_npz(folder / "among.npz", matrix)
        return folder / "among.npz"
    if form == "flat":
        return np.array(rows[0])
    if form == "index":
        return pd.Index(rows[0])
    return matrix


def pairs(side: Any) -> se.Interactions:
    users, items = np.nonzero(side)
    return se.Interactions.from_frame(pd.DataFrame({"user": users, "item": items}))


@pytest.mark.parametrize(
    ("kind", "form"), [*product(KINDS, FORMS), ("everybody", "flat"), ("everybody", "index")]
)
def test_only_sampled_candidates_are_called_so(kind: str, form: str, tmp_path: Path) -> None:
    seen, held, among = problem(kind)
    given = in_form(among, form, tmp_path)
    scores = np.random.default_rng(1).random((N_USERS, N_ITEMS))
    lists: Any = se.Rankings.from_scores(np.where(among & ~seen, scores, -np.inf))
    ids: dict[str, Any] = {}
    train, validation = (sparse.csr_matrix(side.astype(float)) for side in (seen, held))
    if form in ("frame", "index"):  # it names users and items, and so do the others
        ids = {"users": range(N_USERS), "items": range(N_ITEMS)}
        train, validation = (pairs(side) for side in (seen, held))
        lists = se.Rankings.from_frame(lists.to_frame(), rank="rank")
    model = se.Scorer(lambda users: scores[users], **ids)

    def evaluate(metrics: str, **options: Any) -> list[se.Evaluation]:
        options |= {"candidates": given}
        return [
            se.evaluate_model(model, train, validation, metrics, **options),
            se.evaluate(lists, validation, metrics, train=train, **options),
        ]

    with ThreadPoolExecutor(2) as pool:
        ways: list[dict[str, Any]] = [
            {}, {"per_user": False}, {"memory": 1 << 29}, {"client": pool},
        ]  # fmt: skip
        for way in ways:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                for ev in evaluate("ndcg@3", **way):
                    assert ev.candidates is not None
                    assert ev.candidates.kind == KINDS[kind]
            said = sum("sampled candidates" in str(one.message) for one in caught)
            assert said == (2 if "+" in KINDS[kind] else 0)
            if KINDS[kind].startswith("1+"):
                for ev in evaluate("ndcg", corrected="unbiased", **way):
                    assert ev.n_users == N_USERS
                continue
            with pytest.raises(InvalidDataError, match="corrected= needs"):
                evaluate("ndcg", corrected="unbiased", **way)
