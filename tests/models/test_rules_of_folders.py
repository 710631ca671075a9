"""A folder continues with the rules of the protocol that it was begun with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidFileError

HOLDOUT = se.split.random(se.datasets.synthetic(n_users=60, n_items=40, seed=0), seed=0)
RULES: list[dict[str, Any]] = [
    {"no_relevant": "zero"},
    {"without_list": "exclude"},
    {"filter_seen": False},
    {"judged_only": True},
    {"convention": "ranx"},
]


def sweep(protocol: Any, folder: Path) -> object:
    path = folder / "model.npz"
    if not path.exists():
        se.save_model(se.baselines.popularity(HOLDOUT), path)
    return se.sweep(path, HOLDOUT, protocol, out=folder / "out")


def cross_validate(protocol: Any, folder: Path) -> object:
    models = {"popular": lambda train, seed: se.baselines.popularity(train)}
    return se.cross_validate(None, models, protocol, splits=[HOLDOUT], seeds=1, out=folder)


def tune(protocol: Any, folder: Path) -> object:
    space = {"factors": 2, "iterations": 1}
    return se.tune(HOLDOUT, protocol, space=space, out=folder)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("job", [sweep, cross_validate, tune])
def test_other_rules_are_refused(tmp_path: Path, job: Any) -> None:
    job("ndcg@5", tmp_path)
    for rules in RULES:
        with raises(InvalidFileError):
            job(se.Protocol("ndcg@5", **rules), tmp_path)
    job(se.Protocol("ndcg@5"), tmp_path)
