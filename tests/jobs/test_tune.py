"""Searches: their trials, the one test of the best, and folders that they continue from."""

import logging
import shutil
from itertools import product

import optuna
import pytest
from failing import full, interrupted_at
from optuna.distributions import FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler
from raising import raises, warns
from tune_cases import GRID, METRICS, PARAMETERS, same_search, search, three_parts

import sparse_eval as se
import sparse_eval.jobs.tune as tuning
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
    assert [*table[PARAMETERS].itertuples(index=False, name=None)] == [
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
    assert se.Evaluation.load(tmp_path / "test").about["parameters"] == outcome.best
    assert outcome.scores()["test"].tolist() == list(ev.mean().values())
    for again in (search(parts, out=tmp_path), by_grid):
        assert same_search(again, outcome)
    assert len(trained) == 5
    with warns():
        other = search(parts, test=whole.validation.csr[::-1])
    assert other.best == outcome.best
    assert other.trials[METRICS].equals(outcome.trials[METRICS])
    with raises(InvalidFileError):
        search(parts, test=whole.validation.csr[::-1], out=tmp_path)


def test_a_test_is_kept_until_the_model_of_the_next_one_is_written(
    parts, by_grid, tmp_path, monkeypatch
):
    def kept():
        return [(tmp_path / name).read_bytes() for name in ("model.npz", "test/summary.json")]

    first = search(parts, out=tmp_path, n_trials=1)
    before = kept()
    with monkeypatch.context() as patch:
        patch.setattr("numpy.lib.format.write_array", full)
        with raises(OutputError):
            search(parts, out=tmp_path)
    assert kept() == before
    second = search(parts, out=tmp_path)  # in another order, without a trial twice
    assert second.trials[PARAMETERS][:1].equals(first.trials[PARAMETERS])
    found = second.trials.sort_values(PARAMETERS, ignore_index=True)
    assert found[METRICS].equals(by_grid.trials[METRICS])
    assert first.best != second.best == by_grid.best
    assert second.test.to_dict() == by_grid.test.to_dict()
    assert not list(tmp_path.glob(".*.*"))  # no temporary file


def test_a_sampled_search_is_reproducible_and_trials_can_be_added(parts, by_tpe, tmp_path, trained):
    table = by_tpe.trials
    assert table["factors"].between(2, 9).all()
    assert table["alpha"].between(1, 100).all()
    assert table["alpha"].nunique() == 13
    fewer = RANGES | {"n_trials": 4, "out": tmp_path}
    assert len(search(parts, **fewer).trials) == 4
    assert same_search(search(parts, **RANGES, out=tmp_path), by_tpe)
    trained.clear()
    assert len(search(parts, **fewer).trials) == 13
    assert trained == []
    random = search(parts, tested=False, sampler="random", **RANGES).trials["alpha"]
    assert random[:10].equals(table["alpha"][:10])
    assert random[12] != table["alpha"][12]


def test_hopeless_trials_are_pruned(parts, tmp_path):
    factors = [2, 3, 4, 5, 6, 20]
    options = {"factors": factors, "alpha": 1, "iterations": 8, "tested": False}
    for _ in range(2):  # the second time, from the folder
        table = search(parts, **options, out=tmp_path).trials
        assert table["status"].tolist() == ["ok"] * 5 + ["pruned"]
        assert table["best_iteration"].iloc[-1] <= 4
        assert table["ndcg@10"].notna().all()
    whole = search(parts, pruner=optuna.pruners.NopPruner(), **options).trials
    assert (whole["status"] == "ok").all()
    assert whole[METRICS][:5].equals(table[METRICS][:5])


def test_the_monitored_metric_decides_and_of_equal_trials_the_first(parts):
    table = search(parts, ["ndcg@10", "gini@10"], tested=False, monitor="GINI@10").trials
    assert table["best"].idxmax() == table["gini@10"].idxmin()
    table = search(parts, "user_coverage@5", tested=False).trials
    assert table["user_coverage@5"].tolist() == [1.0] * 4
    assert table["best"].tolist() == [True, False, False, False]


def test_a_failed_trial_has_a_reason(parts, tmp_path, trained):
    options = GRID | {"factors": [10**9, 2], "alpha": [1e30, 1.0], "out": tmp_path}
    outcome = search(parts, **options)
    table = outcome.trials
    assert table["status"].tolist() == ["failed", "failed", "failed", "ok"]
    assert "memory" in table["error"][1] or "allocate" in table["error"][1]
    assert "is not finite; train again with a lower alpha" in table["error"][2]
    assert table.loc[:2, [*METRICS, "best_iteration"]].isna().all(axis=None)
    trained.clear()
    assert same_search(search(parts, **options), outcome)
    assert trained == []  # a failure is a result
    none = search(parts, "fcp@1", factors=2, alpha=1.0, patience=1)  # one item has no pairs
    assert "fcp@1 is defined for no user" in none.trials["error"][0]
    assert (none.best, none.test) == (None, None)
    never = search(parts, "fcp@1", factors=2, alpha=1.0)
    assert "fcp@1 is undefined for all users" in never.trials["error"][0]
    assert repr(never).startswith("<Tuning of 1 trial: 1 failed>\ntrial  ")


@pytest.mark.parametrize("space", ["by_grid", "by_tpe"])
def test_an_interrupted_trial_is_run_again(parts, tmp_path, request, space):
    options = RANGES if space == "by_tpe" else {}
    with interrupted_at(tuning, "train_als", 3):
        search(parts, out=tmp_path, **options)
    outcome = search(parts, out=tmp_path, **options)
    assert same_search(outcome, request.getfixturevalue(space))  # in the same order
    assert [trial.state.name for trial in outcome.study.trials].count("RUNNING") == 0
    assert len(outcome.study.trials) == len(outcome.trials) + 1


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
        (parts, {"sampler": "random", "n_trials": 4}),
        (three_parts(seed=1), {}),
        ((whole, se.split.Holdout(part.train, part.validation.csr * 2)), {}),
        ((whole, se.split.Holdout(changed, part.validation, part.users, part.items)), {}),
    ):
        with raises(InvalidFileError):
            search(data, **({"out": tmp_path, "patience": 3} | options))
    assert (tmp_path / "study.jsonl").read_bytes() == before
    assert trained == []


def test_refuses_what_no_search_wrote(parts, by_grid, tmp_path, monkeypatch):
    search(parts, out=tmp_path / "sound", tested=False)
    sound = (tmp_path / "sound" / "study.jsonl").read_bytes()
    path = tmp_path / "study.jsonl"
    path.write_bytes(sound)
    with raises(InvalidFileError):
        search(parts, out=tmp_path)
    shutil.copy(tmp_path / "sound" / "tune.jsonl", tmp_path)
    lines = sound.splitlines(keepends=True)
    for text in (b"of another program\n", b"".join(lines[1:])):
        path.write_bytes(text)
        with raises(InvalidFileError):
            search(parts, out=tmp_path)
        assert path.read_bytes() == text
    for cut in (sound + b'{"op_code":4,"wor', sound[:7], sound[:90]):  # the disk was full
        path.write_bytes(cut)
        assert same_search(search(parts, out=tmp_path), by_grid)

    monkeypatch.setattr("os.fsync", full)
    with raises(OutputError):
        search(parts, out=tmp_path / "full")


def test_refuses_options_and_data_before_anything_is_written(parts, tmp_path):
    for options in (
        {"factors": "8,,16"},
        {"factors": "8:16"},
        {"regularization": "0:1"},
        {"n_trials": 5},
        {"sampler": "random"},
        {"alpha": "1:2", "n_trials": 1.5},
        {"sampler": "grid"},
        {"test": parts[0].validation.csr * 0},
    ):
        with raises(InvalidDataError):
            search(parts, **{"out": tmp_path / "out"} | options)
    assert not (tmp_path / "out").exists()


def test_takes_values_samplers_and_matrices_of_every_kind(parts, by_grid, capfd):
    _, part = parts
    verbosity = logging.getLogger("optuna").level
    converted = parts[0], se.split.Holdout(part.train.csr, part.validation)
    choices = optuna.distributions.CategoricalDistribution([2, 6])
    for factors in (" 2, 6 ", iter(["2", 6]), choices):
        assert same_search(search(converted, factors=factors), by_grid)
    space = {"factors": IntDistribution(2, 4), "alpha": FloatDistribution(0.5, 2), "n_trials": 3}
    own = search(parts, tested=False, sampler=RandomSampler(seed=0), **space)
    assert own.trials["alpha"].between(0.5, 2).all()
    assert own.trials["alpha"].nunique() == 3
    assert f"best: trial {own.trials['best'].idxmax()} (factors " in repr(own)
    assert "<p>Tuning of 3 trials: 3 ok</p><table>" in own._repr_html_()
    assert by_grid.to_markdown().count("ndcg@10") == 2
    assert logging.getLogger("optuna").level == verbosity
    assert capfd.readouterr().err == ""
