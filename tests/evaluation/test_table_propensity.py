"""Propensities by item beside tables that are read in blocks: the numbers of memory."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from merge_cases import same_numbers, same_random
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.evaluation import parquet

METRICS = [
    "psp(propensity=given)@3", "psndcg(average=macro,propensity=given)@3", "recall(weights=ips)@3",
    "ndcg(weights=snips)@3", "ndcg@3",
]  # fmt: skip

Problem = tuple[pd.DataFrame, pd.DataFrame, pd.Series]


def problem(ids: str) -> Problem:
    """Draw lists, relevant items, and a propensity of each item and of some more."""
    rng = np.random.default_rng(0)
    name = {"numbers": lambda item: item * 7, "text": lambda item: f"ü{item}"}[ids]
    items = [name(item) for item in range(40)]
    scores = rng.random((60, 30))
    recs = [
        (user, items[item], scores[user, item]) for user in range(60) for item in range(0, 30, 3)
    ]
    truth = [(user, items[item]) for user in range(60) for item in range(30) if rng.random() < 0.2]
    p = pd.Series(rng.permutation(np.linspace(0.05, 1, 40)), items)
    return (
        pd.DataFrame(recs, columns=["user", "item", "score"]).sample(frac=1, random_state=0),
        pd.DataFrame(truth, columns=["user", "item"]).sample(frac=1, random_state=1),
        p,
    )


def write(folder: Path, drawn: Problem, *, ordered: bool) -> tuple[Path, Path]:
    paths = folder / "recs.parquet", folder / "truth.parquet"
    for frame, path in zip(drawn, paths, strict=False):
        frame = frame.sort_values("user") if ordered else frame
        frame.to_parquet(path, index=False, row_group_size=50)
    return paths


@pytest.mark.parametrize("ids", ["numbers", "text"])
def test_tables_have_the_numbers_of_memory(ids: str, tmp_path: Path) -> None:
    drawn = problem(ids)
    expected = se.evaluate(*drawn[:2], METRICS, items=se.ItemData(propensity=drawn[2]))
    for ordered in (True, False):
        paths = write(tmp_path, drawn, ordered=ordered)
        with (
            mock.patch.object(parquet, "ROWS_AT_ONCE", 100),
            mock.patch.object(parquet, "ROWS_PER_TASK", 100),
            ThreadPoolExecutor(2) as pool,
        ):
            for options in ({}, {"client": pool}, {"memory": 1 << 24}, {"keep": "totals"}):
                chances: Any = drawn[2].to_dict() if options else drawn[2][::-1]
                ev = se.evaluate(*paths, METRICS, items=se.ItemData(propensity=chances), **options)  # type: ignore[arg-type]
                assert ev.propensities == expected.propensities
                if "keep" in options:
                    assert ev.mean() == expected.mean()
                else:
                    pd.testing.assert_frame_equal(ev.per_user, expected.per_user, check_exact=True)
                    same_numbers(ev, expected)
                same_random(ev, expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.to_numpy(),
        lambda p: p.drop("ü3"),
        lambda p: p.where(p.index != "ü2", 0.0),
        lambda p: p.where(p.index != "ü2"),
        lambda p: pd.concat([p, p[:1]]),
        lambda p: pd.Series(p.to_numpy()),
    ],
)
def test_refuses_what_does_not_fit_the_tables(change: Any, tmp_path: Path) -> None:
    drawn = problem("text")
    paths = write(tmp_path, drawn, ordered=True)
    with raises(InvalidDataError):
        se.evaluate(*paths, METRICS, items=se.ItemData(propensity=change(drawn[2])))
