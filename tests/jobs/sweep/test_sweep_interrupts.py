"""Sweeps that are interrupted, killed, or run out of disk space."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from own_process import own_process
from sweep_cases import (
    METRICS,
    rows_of,
    same_table,
)

import sparse_eval as se
import sparse_eval.jobs.scoring as scoring


@contextmanager
def interrupted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int) -> Iterator[Any]:
    """Press Ctrl-C when a function is called for the n-th time."""
    calls = [0]
    function = getattr(owner, name)

    def pressed(*given: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return function(*given, **options)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, pressed)
        with pytest.raises(KeyboardInterrupt):
            yield
    assert calls[0] >= call  # moves that are interrupted are made again


@pytest.mark.parametrize("call", [1, 3])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (scoring, "evaluate_request"),
        (os, "close"),
        (Path, "replace"),
    ],
)
@own_process
def test_ctrl_c_keeps_the_finished_rows(
    folder: Path,
    holdout: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    call: int,
) -> None:
    data, out = (holdout.train, holdout.validation, METRICS), tmp_path / "out" / "table.csv"
    out.parent.mkdir()
    with interrupted(monkeypatch, owner, name, call):
        se.sweep(folder, *data, out=out.parent)
    names = ["sweep.jsonl"] + ["table.csv"] * out.exists()
    assert sorted(path.name for path in out.parent.iterdir()) == names
    if owner is not os:
        assert len(rows_of(out)) == call - 1
    elif call == 1:  # the empty table
        assert not out.exists()
    else:
        assert len(rows_of(out)) == call - 2
    assert same_table(se.sweep(folder, *data, out=out.parent), se.sweep(folder, *data))
