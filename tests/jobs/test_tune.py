"""Searches: their trials, the test of the best, and folders that they continue from."""

import logging
import subprocess
import sys
from itertools import product
from pathlib import Path

import optuna
import pandas as pd
import pytest
from failing import full, interrupted_at
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from raising import raises
from tune_cases import GRID, METRICS, PARAMETERS, same_search, search, three_parts, values_of

import sparse_eval as se
import sparse_eval.jobs.tune as tuning
from sparse_eval.core.atomic_files import locked_folder
from sparse_eval.errors import InvalidDataError, InvalidFileError, OutputError
from sparse_eval.models.checkpoints import read_checkpoint

pytestmark = pytest.mark.long

#: A search by TPE, of which the last trials learn from those before.
RANGES = {"factors": "2:9", "alpha": "1:100", "iterations": 2, "n_trials": 13}


@pytest.fixture(scope="module")
def parts():
    return three_parts()


@pytest.fixture(scope="module")
def by_grid(parts):
    return search(parts)


@pytest.fixture(scope="module")
def by_tpe(parts):
    return search(parts, **RANGES)


@pytest.fixture
def trained(monkeypatch):
    """Collect the number of pairs of each training."""
    calls = []

    def counted(train, **options):
        calls.append(train.nnz)
        return se.train_als(train, **options)

    monkeypatch.setattr(tuning, "train_als", counted)
    return calls


def test_a_grid_has_the_values_of_separate_trainings(parts, by_grid):
    _, part = parts
    table = by_grid.trials
    assert list(table.columns) == [
        "trial", "best", "status", "error", *PARAMETERS, "best_iteration", *METRICS, "seconds",
    ]  # fmt: skip
    assert table["trial"].tolist() == [0, 1, 2, 3]
    assert [*values_of(by_grid)[PARAMETERS].itertuples(index=False, name=None)] == [
        *product([2, 6], [1.0, 40.0], [0.01], [3])
    ]
    for row in table.to_dict("records"):
        curve = []
        for n in range(1, 4):
            options = {name: row[name] for name in PARAMETERS} | {"iterations": n}
            model = se.train_als(part.train, **options)
            curve.append(se.evaluate_model(model, part, METRICS).mean())
        best = max(curve, key=lambda values: values["ndcg@10"])
        assert row["best_iteration"] == curve.index(best) + 1
        assert {name: row[name] for name in METRICS} == best
        assert (row["status"], row["error"], row["seconds"] > 0) == ("ok", "", True)
        assert row["best"] == (row["ndcg@10"] == table["ndcg@10"].max())
    best = table[table["best"]].iloc[0]
    assert by_grid.best == {
        **best[PARAMETERS].to_dict(), "iterations": best["best_iteration"], "seed": 0,
    }  # fmt: skip


def test_a_part_of_a_grid_is_drawn_by_the_seed(parts, by_grid):
    few = search(parts, tested=False, n_trials=2)
    assert few.trials[PARAMETERS + METRICS].equals(by_grid.trials[PARAMETERS + METRICS][:2])
    others = [search(parts, tested=False, n_trials=1, seed=seed) for seed in (1, 2, 3)]
    firsts = [tuple(other.trials.loc[0, PARAMETERS]) for other in (few, *others)]
    assert len(set(firsts)) > 1
    assert same_search(search(parts, n_trials=5), by_grid)  # there are no more than four


def test_the_test_trains_on_both_other_parts_and_no_trial_sees_it(
    parts, by_grid, tmp_path, trained
):
    whole, part = parts
    outcome = search(parts, out=tmp_path)
    assert trained == [part.train.nnz] * 4 + [whole.train.nnz]
    model = se.train_als(whole.train, **outcome.best)
    saved = read_checkpoint(tmp_path / "model.npz").model
    assert saved.item_factors.tobytes() == model.item_factors.tobytes()
    ev = se.evaluate_model(model, whole.train, whole.validation, METRICS)
    assert outcome.test.to_dict() == ev.to_dict()
    number = int(outcome.trials["best"].idxmax())
    about = se.Evaluation.load(tmp_path / "test").about
    assert about == {"trial": number, "parameters": outcome.best}
    table = pd.read_csv(tmp_path / "trials.csv")
    assert table[METRICS].equals(outcome.trials[METRICS])
    for again in (search(parts, out=tmp_path), by_grid):
        assert same_search(again, outcome)
    assert trained[5:] == [whole.train.nnz]  # only the test is repeated
    without = search(parts, tested=False)
    assert without.test is None
    assert without.trials[METRICS].equals(outcome.trials[METRICS])


def test_takes_the_folder_of_a_split(parts, by_grid, tmp_path):
    whole, part = parts
    se.Holdout(part.train, part.validation, test=whole.validation).save(tmp_path)
    assert same_search(se.tune(tmp_path, METRICS, space=GRID), by_grid)


def test_a_test_is_kept_until_the_model_of_the_next_one_is_written(parts, tmp_path, monkeypatch):
    def kept():
        return [(tmp_path / name).read_bytes() for name in ("model.npz", "test/summary.json")]

    options = {"monitor": "recall@5", "out": tmp_path}
    first = search(parts, n_trials=1, **options)
    before = kept()
    with monkeypatch.context() as patch:
        patch.setattr("numpy.lib.format.write_array", full)
        with raises(OutputError):
            search(parts, **options)
    assert kept() == before
    second = search(parts, **options)
    assert second.trials[PARAMETERS][:1].equals(first.trials[PARAMETERS])
    assert same_search(second, search(parts, monitor="recall@5"))
    assert first.best != second.best
    assert se.Evaluation.load(tmp_path / "test").about["parameters"] == second.best
    assert not list(tmp_path.glob(".*.*"))  # no temporary file


def test_a_sampled_search_is_reproducible_and_trials_can_be_added(parts, by_tpe, tmp_path, trained):
    table = by_tpe.trials
    assert table["factors"].between(2, 9).all()
    assert table["alpha"].between(1, 100).all()
    assert table["alpha"].nunique() == 13
    assert by_tpe.study.sampler.__class__.__name__ == "TPESampler"
    assert same_search(search(parts, **RANGES), by_tpe)
    fewer = RANGES | {"n_trials": 4, "out": tmp_path}
    first = search(parts, **fewer).trials["alpha"]
    assert first.equals(table["alpha"][:4])
    added = search(parts, **RANGES, out=tmp_path).trials["alpha"]
    assert added[:4].equals(first)
    assert added.nunique() == 13  # what is added is new
    trained.clear()
    assert len(search(parts, **fewer).trials) == 13
    assert len(trained) == 1


def test_hopeless_trials_are_pruned(parts, tmp_path):
    factors = [6, 4, 3, 5, 20, 2]  # the grid is searched from 2 to 20
    options = {"factors": factors, "alpha": 1, "iterations": 8, "tested": False}
    table = search(parts, **options, out=tmp_path).trials
    assert table["factors"].tolist() == [2, 3, 4, 5, 6, 20]
    assert table["status"].tolist() == ["ok"] * 5 + ["pruned"]
    assert table["best_iteration"].iloc[-1] <= 4
    assert table["ndcg@10"].notna().all()
    again = search(parts, **options, out=tmp_path).trials
    pd.testing.assert_frame_equal(again, table)
    whole = search(parts, pruner=optuna.pruners.NopPruner(), **options).trials
    assert (whole["status"] == "ok").all()
    assert whole[METRICS][:5].equals(table[METRICS][:5])


def test_the_monitored_metric_decides_and_of_equal_trials_the_first(parts, tmp_path):
    table = search(parts, ["ndcg@10", "gini@10"], tested=False, monitor="GINI@10").trials
    assert table["best"].idxmax() == table["gini@10"].idxmin()
    for out in (None, tmp_path):
        table = search(parts, "user_coverage@5", tested=False, out=out).trials
        assert table["user_coverage@5"].tolist() == [1.0] * 4
        assert table["best"].tolist() == [True, False, False, False]


def test_a_failed_trial_has_a_reason(parts, tmp_path, trained):
    options = GRID | {"factors": [10**9, 2], "alpha": [1e30, 1.0], "out": tmp_path}
    outcome = search(parts, **options)
    table = values_of(outcome)
    assert table["status"].tolist() == ["ok", "failed", "failed", "failed"]
    assert "is not finite; train again with a lower alpha" in table["error"][1]
    assert "memory" in table["error"][2] or "allocate" in table["error"][2]
    assert table.loc[1:, [*METRICS, "best_iteration"]].isna().all(axis=None)
    trained.clear()
    assert same_search(search(parts, **options), outcome)
    assert len(trained) == 1  # a failure is a result
    none = search(parts, "fcp@1", factors=2, alpha=1.0, patience=1)  # one item has no pairs
    assert "fcp@1 is defined for no user" in none.trials["error"][0]
    assert (none.best, none.test) == (None, None)
    never = search(parts, "fcp@1", factors=2, alpha=1.0)
    assert "fcp@1 is undefined for all users" in never.trials["error"][0]


def test_an_interrupted_grid_is_completed(parts, by_grid, tmp_path):
    with interrupted_at(tuning, "train_als", 3):
        search(parts, out=tmp_path)
    assert len(pd.read_csv(tmp_path / "trials.csv")) == 2
    outcome = search(parts, out=tmp_path)
    assert same_search(outcome, by_grid)
    assert outcome.trials["trial"].tolist() == [0, 1, 3, 4]


def test_a_trial_is_repeated_after_an_unexpected_error(parts, by_grid, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(optuna.Trial, "should_prune", lambda _: 1 + "")
        with pytest.raises(TypeError):
            search(parts, out=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(optuna.Trial, "report", full)
        with raises(OutputError, path=tmp_path / "study.jsonl"):
            search(parts, out=tmp_path)
    assert same_search(search(parts, out=tmp_path), by_grid)


def test_an_interrupted_sampled_search_goes_on(parts, by_tpe, tmp_path):
    with interrupted_at(tuning, "train_als", 3):
        search(parts, out=tmp_path, **RANGES)
    table = search(parts, out=tmp_path, **RANGES).trials
    assert table["alpha"][:2].equals(by_tpe.trials["alpha"][:2])
    assert len(table) == table["alpha"].nunique() == 13


#: Searches until the process kills itself, in the third trial.
KILLED = """
import os, signal, sys
import sparse_eval.jobs.tune as tuning
from tune_cases import search, three_parts

train_als, calls = tuning.train_als, iter(range(9))

def killed(*given, callback, **options):
    if next(calls) == 2:
        report = callback._log
        callback._log = lambda *about: (report(*about), os.kill(os.getpid(), signal.SIGKILL))
    return train_als(*given, callback=callback, **options)

tuning.train_als = killed
search(three_parts(), out=sys.argv[1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_search_loses_only_the_running_trial(parts, by_grid, tmp_path, trained):
    helpers = Path(__file__).parents[1] / "helpers"
    words = [sys.executable, "-W", "ignore", "-c", KILLED, tmp_path]
    done = subprocess.run(words, cwd=helpers, check=False)
    assert done.returncode == -9
    (tmp_path / "study.jsonl.lock").touch()  # if it is killed while it writes the journal
    whole, part = parts
    outcome = search(parts, out=tmp_path)
    assert same_search(outcome, by_grid)
    assert trained == [part.train.nnz] * 2 + [whole.train.nnz]


def test_one_process_at_a_time_uses_a_folder(parts, tmp_path):
    with locked_folder(tmp_path), raises(OutputError):
        search(parts, out=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_refuses_the_folder_of_another_search(parts, tmp_path, trained):
    search(parts, out=tmp_path, patience=3)
    before = (tmp_path / "study.jsonl").read_bytes()
    trained.clear()
    whole, part = parts
    changed = part.train.csr.copy()
    changed.data[5] += 1
    for data, options in (
        (parts, {"metrics": ["ndcg@10"]}),
        (parts, {"monitor": "recall@5"}),
        (parts, {"patience": None}),
        (parts, {"seed": 1}),
        (parts, {"factors": [6, 2]}),
        (parts, {"factors": "2:6", "n_trials": 4}),
        (three_parts(seed=1), {}),
        ((whole, se.Holdout(part.train, part.validation.csr * 2)), {}),
        ((whole, se.Holdout(changed, part.validation, part.users, part.items)), {}),
    ):
        with raises(InvalidFileError, path=tmp_path / "study.jsonl"):
            search(data, **({"out": tmp_path, "patience": 3} | options))
    assert (tmp_path / "study.jsonl").read_bytes() == before
    assert trained == []


def test_refuses_a_journal_that_is_damaged_or_of_another_program(parts, tmp_path):
    search(parts, out=tmp_path, tested=False, n_trials=1)
    path = tmp_path / "study.jsonl"
    sound = path.read_bytes()
    lines = sound.splitlines(keepends=True)
    for text in (
        b"",
        b"of another program\n",
        b"of another\nprogram\n",
        b"{}\n",
        b"".join(lines[1:]),
        b"".join([*lines[:2], b"\xff\n", *lines[2:]]),
        sound + b'{"op_code":4,"wor',  # the disk was full
        sound[:7],
    ):
        path.write_bytes(text)
        with raises(InvalidFileError, path=path):
            search(parts, out=tmp_path, tested=False, n_trials=1)
        assert path.read_bytes() == text
    own = tmp_path / "own"
    own.mkdir()
    storage = optuna.storages.JournalStorage(
        optuna.storages.journal.JournalFileBackend(str(own / "study.jsonl"))
    )
    optuna.create_study(study_name="tune", storage=storage)
    with raises(InvalidFileError):
        search(parts, out=own)


def test_a_folder_that_cannot_be_written_raises_an_error(parts, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with raises(OutputError):
        search(parts, out=tmp_path / "file")
    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with raises(OutputError):
            search(parts, out=tmp_path / "full")
    search(parts, out=tmp_path / "later", n_trials=1)
    monkeypatch.setattr("os.fsync", full)
    with raises(OutputError, path=tmp_path / "later" / "study.jsonl"):
        search(parts, out=tmp_path / "later")


def test_refuses_options_and_data_before_anything_is_written(parts, tmp_path):
    whole, part = parts
    empty = whole.train, se.Holdout(part.train, part.validation.csr * 0)
    for data, options in (
        (parts, {"factors": "8,,16"}),
        (parts, {"factors": "many"}),
        (parts, {"factors": "8:4:2", "n_trials": 1}),
        (parts, {"factors": []}),
        (parts, {"factors": "8:16"}),
        (parts, {"alpha": [0]}),
        (parts, {"regularization": "0:1"}),
        (parts, {"n_trials": 0}),
        (parts, {"alpha": "1:2", "n_trials": 1.5}),
        (parts, {"sampler": RandomSampler()}),
        (parts, {"sampler": "random", "n_trials": 2}),
        (parts, {"pruner": "median"}),
        (parts, {"seed": -1}),
        (empty, {"tested": False}),
        ((se.Holdout(whole.train, whole.validation.csr * 0), part), {}),
    ):
        with raises(InvalidDataError):
            search(data, **{"out": tmp_path / "out"} | options)
    with raises(InvalidDataError):
        se.tune(part, METRICS, space={"layers": 2}, out=tmp_path / "out")
    with raises(TypeError):
        se.tune(part, METRICS, test=whole.validation, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_takes_values_samplers_and_matrices_of_every_kind(parts, by_grid, capfd):
    _, part = parts
    verbosity = logging.getLogger("optuna").level
    choices = CategoricalDistribution([2, 6])
    for factors in (" 2, 6 ", iter(["2", 6]), choices):
        assert same_search(search(parts, factors=factors), by_grid)
    matrices = se.tune(part.train.csr, part.validation.csr, METRICS, space=GRID)
    assert matrices.trials[METRICS].equals(by_grid.trials[METRICS])
    assert matrices.test is None
    space = {"factors": IntDistribution(2, 4), "alpha": FloatDistribution(0.5, 2), "n_trials": 3}
    own = search(parts, tested=False, sampler=RandomSampler(seed=0), **space)
    assert own.trials["alpha"].between(0.5, 2).all()
    assert own.trials["alpha"].nunique() == 3
    assert len(own.study.trials) == 3
    large = search(parts, tested=False, seed=2**32 + 1, alpha="1:2", factors=2, n_trials=1)
    assert large.trials["status"].tolist() == ["ok"]
    assert logging.getLogger("optuna").level == verbosity
    assert capfd.readouterr().err == ""


def test_a_result_is_printed_as_tables(by_grid):
    assert repr(by_grid).startswith("trial    best ")
    assert repr(by_grid).count("ndcg@10") == by_grid._repr_html_().count("ndcg@10") == 2
    assert by_grid._repr_html_().startswith("<table>")
    for name in ("scores", "to_markdown", "nothing"):
        with raises(AttributeError):
            getattr(by_grid, name)
