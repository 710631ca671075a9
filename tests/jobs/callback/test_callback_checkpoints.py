"""Checkpoints that the callback writes."""

import numpy as np
import pytest
from callback_cases import FAMILIES, ITERATIONS, METRICS, bits, evaluating, make, trained
from failing import full
from killed import run_killed
from raising import raises, warns

import sparse_eval as se
from sparse_eval import errors
from sparse_eval.models.checkpoints import read_checkpoint

pytestmark = pytest.mark.long


def test_checkpoints_hold_the_model_of_each_evaluation(family, holdout, tmp_path):
    folder = tmp_path / "made" / "here"
    callback = evaluating(holdout, every=5, out=folder)
    callback.fit(make(family))
    names = ["iteration_0005.npz", "iteration_0010.npz", "iteration_0012.npz"]
    assert sorted(path.name for path in folder.iterdir()) == names
    kind = FAMILIES[family][0]
    for name, done in zip(names, (5, 10, 12), strict=True):
        expected = trained(family, holdout, done)
        loaded = kind.load(str(folder / name))
        assert bits(loaded) == bits(expected)
        assert loaded.factors == expected.factors
        ev = se.evaluate_model(folder / name, holdout, METRICS)
        assert ev.mean() == callback.history.loc[done, METRICS].to_dict()


def fail(values, step):
    if step >= 3:
        raise RuntimeError("the tracker is away")


def test_a_training_names_the_checkpoints_that_an_earlier_one_left(holdout, tmp_path):
    (tmp_path / "iteration_mine.npz").write_bytes(b"")
    callback = evaluating(holdout, out=tmp_path, log=fail, log_errors="raise")
    with pytest.raises(RuntimeError, match="the tracker is away"):
        callback.fit(make("bpr"))
    with warns():  # once
        callback = evaluating(holdout, log=fail)
        callback.fit(make("bpr"))
    assert len(callback.history) == ITERATIONS
    for options in ({}, {"checkpoints": "best"}):
        assert len(list(tmp_path.iterdir())) == 1 + 3
        with warns():
            evaluating(holdout, out=tmp_path, **options).fit(make("bpr", 2))
    for path in tmp_path.glob("iteration_0*.npz"):
        path.unlink()
    with warns():  # of the best
        evaluating(holdout, out=tmp_path).fit(make("bpr", 2))


def test_a_full_disk_leaves_a_usable_model(family, holdout, tmp_path, monkeypatch):
    callback, model = evaluating(holdout, out=tmp_path, patience=5), make(family)
    monkeypatch.setattr("numpy.lib.format.write_array", full)
    with raises(errors.OutputError):
        callback.fit(model)
    assert list(tmp_path.iterdir()) == []
    assert callback.history.index.tolist() == [1]
    assert bits(model) == bits(trained(family, holdout, 1))


def test_refuses_checkpoints_of_a_seed_that_needs_pickle(holdout, tmp_path):
    model = make("als", random_state=np.random.default_rng(0))
    with raises(errors.UnsupportedModelError):
        evaluating(holdout, out=tmp_path).fit(model)
    assert model.item_factors is None  # refused before the training
    evaluating(holdout).fit(model)
    for whole in (None, np.int64(3)):
        evaluating(holdout, out=tmp_path).fit(make("als", 1, random_state=whole))
        assert read_checkpoint(tmp_path / "iteration_0001.npz").model.item_factors is not None


def test_keeps_only_the_best(family, holdout, tmp_path):
    def look(values, step):
        assert [path.name for path in tmp_path.iterdir()] == ["best.npz"]
        kept = read_checkpoint(tmp_path / "best.npz").model
        assert bits(kept) == bits(trained(family, holdout, callback.best_iteration))

    callback = evaluating(
        holdout, every=2, out=tmp_path, checkpoints="best", log=look, log_errors="raise"
    )
    callback.fit(make(family))
    with raises(errors.InvalidMetricError):
        evaluating(holdout, "fcp@1", checkpoints="best", out=tmp_path).fit(make(family))


KILLED = """
from callback_cases import evaluating, make
import sparse_eval as se

split, out = map(Path, sys.argv[1:])
evaluating(se.Holdout.load(split), out=out, checkpoints="best").fit(make("als"))
"""


def test_a_killed_training_leaves_the_best_so_far(holdout, tmp_path, curves):
    holdout.save(tmp_path / "split")
    values = [row[METRICS[0]] for row in curves["als"]]
    assert max(values) > values[0]  # a better one was about to replace the first
    run_killed(KILLED, 2, tmp_path / "split", tmp_path / "checkpoints")
    kept = read_checkpoint(tmp_path / "checkpoints" / "best.npz").model
    assert bits(kept) == bits(trained("als", holdout, 1))


@pytest.mark.parametrize("keep", ["all", "best"])
@pytest.mark.parametrize("patience", [None, 3])
def test_a_stopped_training_continues_from_its_checkpoints(holdout, tmp_path, keep, patience):
    def stop(_, step):
        steps.append(step)
        if len(steps) == 5:
            raise KeyboardInterrupt

    whole = evaluating(holdout, patience=patience)
    expected = whole.fit(make("als"))
    options = {"patience": patience, "checkpoints": keep, "resume": True, "out": tmp_path}
    steps = []
    with pytest.raises(KeyboardInterrupt):
        evaluating(holdout, log=stop, **options).fit(make("als"))
    for _ in range(2):  # the second time, there is nothing left to do
        callback = evaluating(holdout, log=stop, **options)
        model = callback.fit(make("als"))
        values = callback.history[METRICS]
        assert values.equals(whole.history[METRICS][: len(values)])
        assert callback.best_iteration == whole.best_iteration
        if keep == "all":
            assert (len(values), bits(model)) == (len(whole.history), bits(expected))
            assert steps == [*range(1, len(values) + 1)]
    longer = evaluating(holdout, **options | {"patience": None}).fit(make("als", 14))
    assert bits(longer) == bits(trained("als", holdout, 14))


def test_refuses_to_continue_another_training(holdout, tmp_path):
    evaluating(holdout, out=tmp_path, resume=True).fit(make("als", 2))
    for metrics, model in (("mrr@5", make("als", 2)), (METRICS, make("als", 2, factors=3))):
        with raises(errors.InvalidFileError):
            evaluating(holdout, metrics, out=tmp_path, resume=True).fit(model)
    with raises(errors.InvalidDataError):
        evaluating(holdout, resume=True)
