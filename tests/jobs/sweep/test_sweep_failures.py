"""Checkpoints that fail or change while they are read, and refused input."""

import hashlib
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from raising import raises
from sweep_cases import METRICS, N_ITEMS, N_USERS, NAMES, rows_of, same_table, save
from systems import need_posix

import sparse_eval as se
import sparse_eval.jobs.scoring as scoring
import sparse_eval.jobs.sweep as sweeping
from sparse_eval import errors
from sparse_eval.models.evaluate_model import evaluate_request

pytestmark = pytest.mark.long


# Interpreted kernels warn of what compiled ones do not.
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_broken_checkpoints_have_a_row_and_do_not_stop_the_sweep(tmp_path, data, scored):
    need_posix()
    good = save(tmp_path / "good.npz")
    nan = np.ones((N_ITEMS, 4), np.float32)
    nan[7, 1] = np.nan
    save(tmp_path / "nan.npz", item_factors=nan)
    save(tmp_path / "users.npz", user_factors=np.ones((N_USERS + 1, 4), np.float32))
    sizes = {"user_factors": N_USERS, "item_factors": N_ITEMS}
    save(tmp_path / "huge.npz", **{side: np.full((n, 4), 1e200) for side, n in sizes.items()})
    (tmp_path / "cut.npz").write_bytes(good.read_bytes()[:999])
    os.mkfifo(tmp_path / "pipe.npz")
    reasons = {
        "nan.npz": "item_factors, row 7 is not finite",
        "users.npz": f"train has {N_USERS} users, but the model has {N_USERS + 1}",
        "huge.npz": "so large",
        "cut.npz": "expected an .npz file",
        "pipe.npz": "is not a file",
        "missing.npz": "does not exist",
    }
    paths = [*(tmp_path / name for name in reasons), good]
    table = se.sweep(paths, *data, out=tmp_path / "out")
    assert table["status"].tolist() == ["failed"] * 6 + ["ok"]
    for reason, error in zip(reasons.values(), table["error"], strict=False):
        assert reason in error
        assert "\n" not in error
        assert str(tmp_path) not in error
    assert table[NAMES].isna().all(axis=1).tolist() == [True] * 6 + [False]
    assert table["best"].tolist() == [False] * 6 + [True]
    assert len(rows_of(tmp_path / "out" / "table.csv")) == 7
    # only failures are tried again
    scored.clear()
    for path in paths[:-1]:
        path.unlink(missing_ok=True)
        save(path, 3, seed=len(path.name))
    again = se.sweep(paths, *data, out=tmp_path / "out")
    assert set(scored) == {3}
    assert same_table(again, se.sweep(paths, *data))


def test_errors_of_memory_are_rows_and_others_are_raised(folder, data, tmp_path, monkeypatch):
    def fail(request, model, *given, **options):
        if model.item_factors.shape[1] in causes:
            raise causes[model.item_factors.shape[1]]
        return evaluate_request(request, model, *given, **options)

    causes = {4: MemoryError(), 10: ZeroDivisionError()}
    monkeypatch.setattr(scoring, "evaluate_request", fail)
    with pytest.raises(ZeroDivisionError):
        se.sweep(folder, *data, out=tmp_path / "s")
    assert [row["status"] for row in rows_of(tmp_path / "s" / "table.csv")] == ["ok", "failed"]
    del causes[10]
    table = se.sweep(folder, *data, out=tmp_path / "s")
    assert table["error"].tolist() == ["", "there is not enough memory", ""]
    assert table["ndcg@10"].isna().tolist() == [False, True, False]
    del causes[4]
    assert same_table(se.sweep(folder, *data, out=tmp_path / "s"), se.sweep(folder, *data))


def overwrite(path, new):
    path.write_bytes(new.read_bytes())
    os.utime(path, (0, 0))


@pytest.mark.parametrize(
    ("owner", "name", "change"),
    [
        (hashlib, "file_digest", overwrite),
        (sweeping, "read_checkpoint", lambda path, new: new.replace(path)),
    ],
)
def test_a_checkpoint_that_changes_while_it_is_read_fails_until_the_next_sweep(
    folder, data, monkeypatch, owner, name, change
):
    def reads(given, *more):
        found = read(given, *more)
        if path.name in str(given):
            change(path, new)
        return found

    path, read = folder / "als-4.npz", getattr(owner, name)
    new = save(folder.parent / "new.npz", 4, seed=8)
    digest = hashlib.sha256(new.read_bytes()).hexdigest()
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, reads)
        table = se.sweep(folder, *data)
    assert table["status"].tolist() == ["ok", "failed", "ok"]
    assert table["error"][1] == "changed while it was read; score it again"
    assert se.sweep(folder, *data)["sha256"][1] == digest


def test_refuses_bad_input_before_the_first_checkpoint(folder, holdout, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.setattr(sweeping, "score_task", lambda *_: pytest.fail("a checkpoint was read"))
    good = {"paths": folder, "train": holdout.train, "validation": holdout.validation}
    good |= {"metrics": METRICS, "out": tmp_path / "out"}
    spark = type("SparkSession", (), {"__module__": "pyspark.sql.session"})()
    closed = ThreadPoolExecutor(1)
    closed.shutdown()
    for given, error in (
        ({"metrics": "ndgc@10"}, errors.InvalidMetricError),
        ({"paths": []}, errors.InvalidDataError),
        ({"paths": [3]}, errors.InvalidDataError),
        ({"paths": tmp_path / "empty"}, errors.InvalidFileError),
        ({"validation": holdout.validation.csr * 0}, errors.InvalidDataError),
        ({"num_threads": 0}, errors.InvalidDataError),
        ({"out": folder / "als-2.npz"}, errors.OutputError),
        ({"save": True, "out": None}, errors.InvalidDataError),
        ({"client": 3, "out": None}, errors.InvalidDataError),
        ({"client": spark}, errors.InvalidDataError),
        ({"client": closed, "out": None}, errors.WorkerError),
    ):
        with raises(error):
            se.sweep(**good | given)
    assert not (tmp_path / "out" / "table.csv").exists()
