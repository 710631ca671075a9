"""Checkpoints that fail or change while they are read, and refused input."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import raises
from sweep_cases import (
    METRICS,
    N_ITEMS,
    N_USERS,
    NAMES,
    changing,
    overwrite,
    rows_of,
    same_table,
    save,
    swap,
)
from systems import need_posix

import sparse_eval as se
import sparse_eval.jobs.scoring as scoring
import sparse_eval.jobs.sweep as sweeping
from sparse_eval.errors import InvalidDataError, InvalidFileError, InvalidMetricError, OutputError
from sparse_eval.models.evaluate import evaluate_request


def break_checkpoints(folder: Path) -> dict[str, str]:
    """Put broken checkpoints into a folder; return the reasons."""
    good = save(folder / "good.npz").read_bytes()
    nan = np.ones((N_ITEMS, 4), np.float32)
    nan[7, 1] = np.nan
    huge = np.full((N_ITEMS, 4), 1e200)
    save(folder / "nan.npz", item_factors=nan)
    save(folder / "users.npz", user_factors=np.ones((N_USERS + 1, 4), np.float32))
    save(folder / "huge.npz", item_factors=huge, user_factors=np.full((N_USERS, 4), 1e200))
    (folder / "cut.npz").write_bytes(good[: len(good) // 2])
    need_posix()
    os.mkfifo(folder / "pipe.npz")
    return {
        "nan.npz": "item_factors, row 7 is not finite",
        "users.npz": f"train has {N_USERS} users, but the model has {N_USERS + 1}",
        "huge.npz": "so large",
        "cut.npz": "expected an .npz file",
        "pipe.npz": "is not a file",
    }


# Interpreted kernels warn of what compiled ones do not.
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_broken_checkpoints_have_a_row_and_do_not_stop_the_sweep(
    tmp_path: Path, holdout: Any, scored: list[Any]
) -> None:
    reasons = break_checkpoints(tmp_path)
    reasons["missing.npz"] = "does not exist"
    data = (holdout.train, holdout.validation, METRICS)
    paths = [*sorted(tmp_path.iterdir()), tmp_path / "missing.npz"]
    out = tmp_path / "out" / "table.csv"
    paths.remove(tmp_path / "good.npz")
    table = se.sweep([*paths, tmp_path / "good.npz"], *data, out=out.parent)
    failed = table[table["status"] == "failed"].set_index("file")
    assert {Path(file).name for file in failed.index} == {*reasons}
    for name, reason in reasons.items():
        error = failed.loc[str(tmp_path / name), "error"]
        assert reason in error
        assert "\n" not in error
        assert str(tmp_path) not in error
    assert failed[NAMES].isna().all().all()
    assert not failed["best"].any()
    assert table["status"].tolist()[-1] == "ok"
    assert table["best"].tolist()[-1]
    assert len(rows_of(out)) == len(reasons) + 1
    # only failures are tried again
    scored.clear()
    for name in reasons:
        (tmp_path / name).unlink(missing_ok=True)
        save(tmp_path / name, 3, seed=len(name))
    again = se.sweep([*paths, tmp_path / "good.npz"], *data, out=out.parent)
    assert set(scored) == {3}
    assert set(again["status"]) == {"ok"}
    assert same_table(again, se.sweep([*paths, tmp_path / "good.npz"], *data))


def test_too_little_memory_is_a_row_until_there_is_enough(
    folder: Path, holdout: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(request: Any, model: Any, *data: Any, **options: Any) -> Any:
        if model.item_factors.shape[1] == 4:
            raise MemoryError
        return evaluate_request(request, model, *data, **options)

    data, out = (holdout.train, holdout.validation, METRICS), tmp_path / "out" / "table.csv"
    with monkeypatch.context() as patch:
        patch.setattr(scoring, "evaluate_request", fail)
        table = se.sweep(folder, *data, out=out.parent)
    assert table["error"].tolist() == ["", "there is not enough memory", ""]
    assert table["ndcg@10"].isna().tolist() == [False, True, False]
    assert same_table(se.sweep(folder, *data, out=out.parent), se.sweep(folder, *data))


def test_raises_errors_that_are_not_the_checkpoint_s(
    folder: Path, holdout: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(request: Any, model: Any, *data: Any, **options: Any) -> Any:
        if model.item_factors.shape[1] == 10:
            raise ZeroDivisionError
        return evaluate_request(request, model, *data, **options)

    monkeypatch.setattr(scoring, "evaluate_request", fail)
    with pytest.raises(ZeroDivisionError):
        se.sweep(folder, holdout.train, holdout.validation, METRICS, out=tmp_path / "s")
    assert [row["factors"] for row in rows_of(tmp_path / "s" / "table.csv")] == ["2", "4"]


@pytest.mark.parametrize("change", [overwrite, swap])
@pytest.mark.parametrize(
    ("owner", "name"),
    [(hashlib, "file_digest"), (sweeping, "read_checkpoint")],
)
def test_a_checkpoint_that_changes_while_it_is_read_fails_until_the_next_sweep(
    folder: Path,
    holdout: Any,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    change: Callable[[Path, bytes], None],
) -> None:
    path, data = folder / "als-4.npz", (holdout.train, holdout.validation, METRICS)
    new = save(folder.parent / "new.npz", 4, seed=8).read_bytes()
    assert len(new) == path.stat().st_size
    with changing(monkeypatch, owner, name, path, [lambda: change(path, new)]):
        table = se.sweep(folder, *data)
    assert table["status"].tolist() == ["ok", "failed", "ok"]
    assert table["error"][1] == "changed while it was read; score it again"
    assert table.loc[1, NAMES].isna().all()
    assert se.sweep(folder, *data)["sha256"][1] == hashlib.sha256(new).hexdigest()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ({"metrics": "ndgc@10"}, InvalidMetricError),
        ({"monitor": "mrr@5"}, InvalidMetricError),
        ({"paths": []}, InvalidDataError),
        ({"paths": [3]}, InvalidDataError),
        ({"paths": "EMPTY"}, InvalidFileError),
        ({"validation": "NOTHING"}, InvalidDataError),
        ({"num_threads": 0}, InvalidDataError),
        ({"out": "NOWHERE"}, OutputError),
        ({"save": True, "out": None}, InvalidDataError),
    ],
)
def test_refuses_bad_input_before_the_first_checkpoint(
    folder: Path,
    holdout: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: dict[str, Any],
    error: type[Exception],
) -> None:
    (tmp_path / "empty").mkdir()
    odd = {
        "EMPTY": tmp_path / "empty",
        "NOTHING": holdout.validation.csr * 0,
        "NOWHERE": folder / "als-2.npz",
    }
    given = {name: odd.get(x, x) if isinstance(x, str) else x for name, x in call.items()}
    good = {"paths": folder, "train": holdout.train, "validation": holdout.validation}
    out = tmp_path / "out" / "table.csv"

    def never(*given: Any) -> Any:
        raise AssertionError("a checkpoint was read")

    monkeypatch.setattr(sweeping, "score_task", never)
    with raises(error):
        se.sweep(**(good | {"metrics": METRICS, "out": out.parent} | given))
    assert not out.exists()
