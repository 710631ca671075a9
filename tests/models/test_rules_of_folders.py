"""A folder continues with the rules of the protocol that it was begun with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidFileError

CLICKS = se.datasets.synthetic(n_users=60, n_items=150, n_interactions=700, seed=0)
HOLDOUT = se.split.last_n(CLICKS, n=1)
RULES: list[dict[str, Any]] = [
    {"no_relevant": "zero"},
    {"without_list": "exclude"},
    {"filter_seen": False},
    {"judged_only": True},
    {"convention": "ranx"},
]


def negatives(holdout: se.Holdout, seed: int = 0) -> Any:
    return se.sample_negatives(holdout, n=3, seed=seed)


#: Candidates of which each must be the only ones of a folder.
CANDIDATES: list[Any] = [
    None,
    negatives,
    lambda holdout: negatives(holdout, seed=1),
    lambda holdout: negatives(holdout).corrected("unbiased"),
]


def sweep(protocol: Any, folder: Path, candidates: Any = None) -> Any:
    path = folder / "model.npz"
    if not path.exists():
        se.save_model(se.baselines.popularity(HOLDOUT), path)
    among = candidates and candidates(HOLDOUT)
    return se.sweep(path, HOLDOUT, protocol, out=folder / "out", candidates=among)


def cross_validate(protocol: Any, folder: Path, candidates: Any = None) -> Any:
    models = {"popular": lambda train, seed: se.baselines.popularity(train)}
    options: dict[str, Any] = {"splits": [HOLDOUT], "seeds": 1, "candidates": candidates}
    return se.cross_validate(None, models, protocol, out=folder, **options).table


def tune(protocol: Any, folder: Path, candidates: Any = None) -> Any:
    space = {"factors": 2, "iterations": 1}
    return se.tune(HOLDOUT, protocol, space=space, out=folder, candidates=candidates).trials


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("job", [sweep, cross_validate, tune])
def test_other_rules_are_refused(tmp_path: Path, job: Any) -> None:
    job("ndcg@5", tmp_path)
    for rules in RULES:
        with raises(InvalidFileError):
            job(se.Protocol("ndcg@5", **rules), tmp_path)
    job(se.Protocol("ndcg@5"), tmp_path)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("job", [sweep, cross_validate, tune])
def test_other_candidates_are_refused(tmp_path: Path, job: Any) -> None:
    for number, candidates in enumerate(CANDIDATES):
        folder = tmp_path / str(number)
        folder.mkdir()
        table = job("ndcg@5", folder, candidates)
        for other in CANDIDATES:
            if other is not candidates:
                with raises(InvalidFileError):
                    job("ndcg@5", folder, other)
        assert job("ndcg@5", folder, candidates).equals(table)
