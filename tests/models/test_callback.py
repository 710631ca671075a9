"""Evaluation inside training: every family, early stops, checkpoints, trackers, and what fails."""

from __future__ import annotations

import re
import resource
import signal
import socket
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from implicit.cpu.als import AlternatingLeastSquares
from implicit.cpu.bpr import BayesianPersonalizedRanking
from implicit.cpu.lmf import LogisticMatrixFactorization
from implicit.nearest_neighbours import CosineRecommender
from scipy import sparse
from threadpoolctl import threadpool_limits

import sparse_eval as se
from sparse_eval.errors import (
    InvalidDataError,
    InvalidMetricError,
    OutputError,
    SparseEvalError,
    UnsupportedModelError,
)
from sparse_eval.models.callback import EvaluationCallback, TrainingStopped
from sparse_eval.models.checkpoints import read_checkpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

N_USERS, N_ITEMS, ITERATIONS = 120, 40, 12
METRICS = ["ndcg@10", "recall@5"]
ONE = {"random_state": 0, "num_threads": 1}  # several threads of BPR race each other

#: Settings with which ndcg@10 soon gets worse, and how long to wait for that.
FAMILIES: dict[str, tuple[Any, dict[str, Any], int]] = {
    "als": (AlternatingLeastSquares, {"factors": 16, "regularization": 0.001, "alpha": 40.0}, 3),
    "als64": (AlternatingLeastSquares, {"factors": 8, "dtype": np.float64, "use_cg": False}, 1),
    "bpr": (BayesianPersonalizedRanking, {"factors": 16, "learning_rate": 0.3}, 3),
    "lmf": (LogisticMatrixFactorization, {"factors": 8}, 1),
}


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread() -> Iterator[None]:
    with threadpool_limits(1, "blas"):  # implicit warns of more
        yield


@pytest.fixture(scope="module")
def holdout() -> Any:
    clicks = se.datasets.synthetic(n_users=N_USERS, n_items=N_ITEMS, n_interactions=1200, seed=3)
    return se.split.random(clicks, fraction=0.3, seed=0)


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def make(family: str, iterations: int = ITERATIONS, **options: Any) -> Any:
    kind, settings, _ = FAMILIES[family]
    return kind(**(settings | ONE | {"iterations": iterations} | options))


def trained(family: str, holdout: Any, iterations: int = ITERATIONS) -> Any:
    """A model that no callback has seen."""
    model = make(family, iterations)
    model.fit(holdout.train, show_progress=False)
    return model


def evaluating(holdout: Any, metrics: Any = METRICS, **options: Any) -> EvaluationCallback:
    return EvaluationCallback(holdout.train, holdout.validation, metrics, **options)


def bits(model: Any) -> tuple[bytes, bytes]:
    return model.user_factors.tobytes(), model.item_factors.tobytes()


@pytest.fixture(scope="module")
def curves(holdout: Any) -> dict[str, list[dict[str, float]]]:
    """The metrics after each number of iterations, each from a training of its own."""
    return {
        family: [
            se.evaluate_model(
                trained(family, holdout, n), holdout.train, holdout.validation, METRICS
            ).mean()
            for n in range(1, ITERATIONS + 1)
        ]
        for family in FAMILIES
    }


def stop_of(values: list[float], patience: int) -> tuple[int, int]:
    """(iterations done, best of them) of a training that stops early."""
    for done in range(1, len(values) + 1):
        best = values.index(max(values[:done])) + 1
        if done - best == patience:
            return done, best
    raise AssertionError("these settings do not stop early")


def test_the_history_is_that_of_separate_trainings(
    family: str, holdout: Any, curves: dict[str, Any]
) -> None:
    callback = evaluating(holdout)
    assert callback.history.empty
    assert callback.best_iteration is None
    model = make(family)
    assert callback.fit(model) is model
    history = callback.history
    assert history.index.name == "iteration"
    assert history.index.tolist() == list(range(1, ITERATIONS + 1))
    assert history.columns.tolist() == ["train_seconds", "evaluate_seconds", *METRICS]
    assert history[METRICS].to_dict("records") == curves[family]
    assert (history[["train_seconds", "evaluate_seconds"]] > 0).all(axis=None)
    ndcg = [row["ndcg@10"] for row in curves[family]]
    assert callback.best_iteration == ndcg.index(max(ndcg)) + 1
    assert bits(model) == bits(trained(family, holdout))  # the last factors, not the best


def test_the_loss_where_als_computes_it(holdout: Any) -> None:
    logged = []
    callback = evaluating(holdout, log=lambda values, step: logged.append(values))
    losses = []
    model = make("als", calculate_training_loss=True)
    model.fit(
        holdout.train, show_progress=False, callback=lambda *told: losses.append(float(told[2]))
    )
    callback.fit(make("als", calculate_training_loss=True))
    assert callback.history["loss"].tolist() == losses
    assert callback.history.columns.tolist()[2] == "loss"
    assert [row["loss"] for row in logged] == losses


def test_every_few_iterations_and_the_last(
    family: str, holdout: Any, curves: dict[str, Any]
) -> None:
    told: list[float] = []
    callback = evaluating(holdout, every=5)
    model = make(family)

    def both(*state: Any) -> None:
        told.append(state[1])
        watch(*state)

    watch = callback.on(model)
    model.fit(holdout.train, show_progress=False, callback=both)
    assert callback.history.index.tolist() == [5, 10, 12]
    assert callback.history["recall@5"].tolist() == [
        curves[family][done - 1]["recall@5"] for done in (5, 10, 12)
    ]
    sums = [sum(told[:5]), sum(told[5:10]), sum(told[10:])]
    np.testing.assert_allclose(callback.history["train_seconds"], sums)
    rarely = evaluating(holdout, every=50)
    rarely.fit(make(family))
    assert rarely.history.index.tolist() == [ITERATIONS]


@pytest.mark.parametrize("own_fit", [False, True])
def test_an_early_stop_leaves_the_best_factors(
    family: str, holdout: Any, curves: dict[str, Any], own_fit: bool
) -> None:
    patience = FAMILIES[family][2]
    done, best = stop_of([row["ndcg@10"] for row in curves[family]], patience)
    assert best < done < ITERATIONS
    callback = evaluating(holdout, patience=patience)
    model = make(family)
    if own_fit:
        says = f"after {done} iterations; ndcg@10 was best after {best}"
        with pytest.raises(TrainingStopped, match=says):
            model.fit(holdout.train, show_progress=False, callback=callback.on(model))
    else:
        callback.fit(model)
    assert callback.history.index.tolist() == list(range(1, done + 1))
    assert callback.best_iteration == best
    assert bits(model) == bits(trained(family, holdout, best))
    after = se.evaluate_model(model, holdout.train, holdout.validation, "ndcg@10")
    assert after["ndcg@10"] == callback.history["ndcg@10"].max()


def test_patience_counts_evaluations(holdout: Any, curves: dict[str, Any]) -> None:
    every_second = [row["ndcg@10"] for row in curves["bpr"]][1::2]
    done, best = stop_of(every_second, 2)
    callback = evaluating(holdout, every=2, patience=2)
    model = callback.fit(make("bpr"))
    assert callback.history.index.tolist() == list(range(2, 2 * done + 1, 2))
    assert callback.best_iteration == 2 * best
    assert bits(model) == bits(trained("bpr", holdout, 2 * best))


@pytest.mark.parametrize("own_fit", [False, True])
def test_a_training_that_runs_through_with_patience(
    family: str, holdout: Any, curves: dict[str, Any], own_fit: bool
) -> None:
    values = [row["ndcg@10"] for row in curves[family]]
    best = values.index(max(values)) + 1
    callback = evaluating(holdout, patience=ITERATIONS)
    model = make(family)
    if own_fit:
        model.fit(holdout.train, show_progress=False, callback=callback.on(model))
    else:
        callback.fit(model)
    assert len(callback.history) == ITERATIONS
    assert callback.best_iteration == best
    assert bits(model) == bits(trained(family, holdout, best))


def test_lower_is_better(holdout: Any) -> None:
    callback = evaluating(holdout, "gini@10,ndcg@10", monitor="gini@10")
    callback.fit(make("bpr"))
    assert callback.best_iteration == callback.history["gini@10"].idxmin()
    assert callback.history["gini@10"].idxmin() != callback.history["gini@10"].idxmax()
    other = evaluating(holdout, "gini@10,ndcg@10", monitor="NDCG@10")
    other.fit(make("bpr"))
    assert other.best_iteration == other.history["ndcg@10"].idxmax()


def test_an_equal_value_is_no_improvement(holdout: Any) -> None:
    callback = evaluating(holdout, "user_coverage@5", monitor="user_coverage@5", patience=3)
    model = callback.fit(make("lmf"))
    assert callback.history["user_coverage@5"].tolist() == [1.0] * 4
    assert callback.best_iteration == 1
    assert bits(model) == bits(trained("lmf", holdout, 1))


def test_a_monitor_that_is_defined_for_nobody(holdout: Any) -> None:
    callback = evaluating(holdout, "fcp@1", monitor="fcp@1")  # there are no pairs in one item
    callback.fit(make("bpr"))
    assert callback.history["fcp@1"].isna().all()
    assert callback.best_iteration is None
    callback = evaluating(holdout, "fcp@1", monitor="fcp@1", patience=2)
    with pytest.raises(InvalidMetricError, match="fcp@1 is defined for no user after 1 iter"):
        callback.fit(make("bpr"))


def test_a_warm_start_is_a_training_of_its_own(family: str, holdout: Any) -> None:
    plain = make(family, 3)
    for _ in range(2):
        plain.fit(holdout.train, show_progress=False)
    for own_fit in (False, True):
        callback = evaluating(holdout)
        model = make(family, 3)
        for _ in range(2):
            if own_fit:
                watch = callback.on(model)
                model.fit(holdout.train, show_progress=False, callback=watch)
                with pytest.raises(UnsupportedModelError, match="does not tell a callback"):
                    make(family, 3).fit(holdout.train, show_progress=False, callback=watch)
            else:
                callback.fit(model)
            assert callback.history.index.tolist() == [1, 2, 3]
        assert bits(model) == bits(plain)


def test_the_best_of_one_training_does_not_reach_into_the_next(family: str, holdout: Any) -> None:
    callback = evaluating(holdout, patience=1)
    model = callback.fit(make(family))
    before = callback.history
    best = bits(model)
    other = callback.fit(make(family))
    assert bits(model) == best == bits(other)
    assert before["ndcg@10"].tolist() == callback.history["ndcg@10"].tolist()


def test_derived_values_follow_the_best_factors(family: str, holdout: Any) -> None:
    model = make(family)
    patience = FAMILIES[family][2]
    callback = evaluating(holdout, patience=patience, log=lambda *_: model.similar_items(3))
    callback.fit(model)
    assert callback.history.index[-1] > callback.best_iteration
    fresh = trained(family, holdout, callback.best_iteration)
    for mine, theirs in zip(model.similar_items(3), fresh.similar_items(3), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert (model.similar_users(5)[1] == fresh.similar_users(5)[1]).all()


def test_inputs_of_every_kind_are_left_alone(family: str, holdout: Any) -> None:
    expected = bits(trained(family, holdout))
    single = holdout.train.astype(np.float32)
    for part in (single.data, single.indices, single.indptr):
        part.flags.writeable = False
    unsorted = holdout.train[:, ::-1][:, ::-1].tocsr()
    for row in range(N_USERS):
        of = slice(*unsorted.indptr[row : row + 2])
        unsorted.indices[of], unsorted.data[of] = (
            unsorted.indices[of][::-1],
            unsorted.data[of][::-1],
        )
    unsorted.has_sorted_indices = False
    before = unsorted.indices.copy()
    for train in (single, unsorted, sparse.csr_array(holdout.train), holdout.train.tocoo()):
        truth = se.Relevance.from_csr(holdout.validation[:100, :30])
        callback = EvaluationCallback(train, truth, iter(METRICS))
        assert bits(callback.fit(make(family, 12))) == expected
    assert (unsorted.indices == before).all()


# Checkpoints


def test_checkpoints_hold_the_model_of_each_evaluation(
    family: str, holdout: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "made" / "here"
    callback = evaluating(holdout, every=5, checkpoint_dir=folder)
    callback.fit(make(family))
    names = ["iteration_0005.npz", "iteration_0010.npz", "iteration_0012.npz"]
    assert sorted(path.name for path in folder.iterdir()) == names
    kind = FAMILIES[family][0]
    for name, done in zip(names, (5, 10, 12), strict=True):
        expected = trained(family, holdout, done)
        read = read_checkpoint(folder / name)
        loaded = kind.load(str(folder / name))
        assert bits(read) == bits(loaded) == bits(expected)
        assert read.parameters["factors"] == loaded.factors == expected.factors
        ev = se.evaluate_model(folder / name, holdout.train, holdout.validation, METRICS)
        assert ev.mean() == callback.history.loc[done, METRICS].to_dict()


def test_a_training_that_is_repeated_replaces_its_checkpoints(holdout: Any, tmp_path: Path) -> None:
    def fail(values: dict[str, float], step: int) -> None:
        if step == 3:
            raise RuntimeError("the tracker is away")

    callback = evaluating(holdout, checkpoint_dir=tmp_path, log=fail)
    with pytest.raises(RuntimeError, match="the tracker is away"):
        callback.fit(make("bpr", random_state=7))
    assert len(list(tmp_path.iterdir())) == 3
    evaluating(holdout, checkpoint_dir=tmp_path).fit(make("bpr", 4))
    assert len(list(tmp_path.iterdir())) == 4
    read = read_checkpoint(tmp_path / "iteration_0002.npz")
    assert bits(read) == bits(trained("bpr", holdout, 2))


@contextmanager
def full_disk() -> Iterator[None]:
    """Let no file grow beyond a few bytes; the signal that says so is ignored by Python."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("patience", [None, 5])
def test_a_disk_that_is_full(
    family: str, holdout: Any, tmp_path: Path, patience: int | None
) -> None:
    callback = evaluating(holdout, checkpoint_dir=tmp_path, patience=patience)
    model = make(family, 2)
    callback.fit(model)  # what is compiled on first use is on disk by now
    for path in tmp_path.iterdir():
        path.unlink()
    model = make(family)
    with pytest.raises(OutputError, match="iteration_0001.npz: cannot be written"), full_disk():
        callback.fit(model)
    assert list(tmp_path.iterdir()) == []
    assert len(callback.history) == 1
    assert bits(model) == bits(trained(family, holdout, 1))
    ev = se.evaluate_model(model, holdout.train, holdout.validation, METRICS)
    assert ev.mean() == callback.history.loc[1, METRICS].to_dict()


def test_a_folder_that_disappears(holdout: Any, tmp_path: Path) -> None:
    folder = tmp_path / "gone"
    callback = evaluating(holdout, checkpoint_dir=folder)
    folder.rmdir()
    with pytest.raises(OutputError, match=f"{folder}/iteration_0001.npz: cannot be written"):
        callback.fit(make("lmf"))


def test_a_checkpoint_without_pickle_needs_a_whole_number_as_seed(
    holdout: Any, tmp_path: Path
) -> None:
    model = make("als", random_state=np.random.default_rng(0))
    with pytest.raises(UnsupportedModelError, match="random_state is a Generator"):
        evaluating(holdout, checkpoint_dir=tmp_path).fit(model)
    assert model.item_factors is None  # said before anything was trained
    evaluating(holdout).fit(model)
    for whole in (None, 3, np.int64(3)):
        evaluating(holdout, checkpoint_dir=tmp_path).fit(make("als", 1, random_state=whole))
        assert read_checkpoint(tmp_path / "iteration_0001.npz").item_factors is not None


# Trackers, and what goes wrong


def test_log_is_told_each_evaluation(family: str, holdout: Any, curves: dict[str, Any]) -> None:
    told: list[tuple[dict[str, float], int]] = []
    callback = evaluating(holdout, every=6, log=lambda *args: told.append(args))
    callback.fit(make(family))
    assert told == [(curves[family][5], 6), (curves[family][11], 12)]
    told[0][0].clear()  # what is done with it does not reach the history
    assert callback.history["ndcg@10"].tolist() == [curves[family][n]["ndcg@10"] for n in (5, 11)]


def test_mlflow_as_tracker(holdout: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    store = tmp_path / "tracked"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", store.as_uri())
    import mlflow

    def log(values: dict[str, float], step: int) -> None:
        names = {re.sub(r"[^\w.-]", "_", name): value for name, value in values.items()}
        mlflow.log_metrics(names, step=step)

    callback = evaluating(holdout, ["ndcg@10", "ndcg(gain=exp)@10"], every=4, log=log)
    with mlflow.start_run() as run:
        callback.fit(make("als", calculate_training_loss=True))
    client = mlflow.MlflowClient()
    tracked = {
        name: [
            (point.step, point.value) for point in client.get_metric_history(run.info.run_id, name)
        ]
        for name in client.get_run(run.info.run_id).data.metrics
    }
    columns = {"ndcg_10": "ndcg@10", "ndcg_gain_exp__10": "ndcg(gain=exp)@10", "loss": "loss"}
    assert tracked == {
        name: list(callback.history[column].items()) for name, column in columns.items()
    }
    assert [path.name for path in tmp_path.iterdir()] == ["tracked"]
    with pytest.raises(mlflow.exceptions.MlflowException, match='Invalid value "ndcg@10"'):
        client.log_metric(run.info.run_id, "ndcg@10", 0.5)  # which is why the names are changed


@pytest.mark.parametrize("patience", [None, 50])
def test_an_interrupt_leaves_a_usable_model(
    family: str, holdout: Any, curves: dict[str, Any], patience: int | None
) -> None:
    def interrupt(values: dict[str, float], step: int) -> None:
        if step == 7:
            signal.raise_signal(signal.SIGINT)  # what Ctrl-C does

    callback = evaluating(holdout, patience=patience, log=interrupt)
    model = make(family)
    with pytest.raises(KeyboardInterrupt):
        callback.fit(model)
    values = [row["ndcg@10"] for row in curves[family]][:7]
    left = 7 if patience is None else values.index(max(values)) + 1
    assert bits(model) == bits(trained(family, holdout, left))
    assert callback.history["ndcg@10"].tolist() == values
    callback = evaluating(holdout)
    callback.fit(model)  # and it can go on
    assert len(callback.history) == ITERATIONS


@pytest.mark.parametrize("kind", [RuntimeError, InvalidDataError, SystemExit])
def test_what_log_raises_is_not_swallowed(
    family: str, holdout: Any, kind: type[BaseException]
) -> None:
    def fail(values: dict[str, float], step: int) -> None:
        raise kind("from the tracker")

    callback = evaluating(holdout, log=fail)
    with pytest.raises(kind, match="from the tracker"):
        callback.fit(make(family))
    assert len(callback.history) == 1
    model = make(family)
    with pytest.raises(kind, match="from the tracker"):
        model.fit(holdout.train, show_progress=False, callback=callback.on(model))
    with pytest.raises(kind, match="from the tracker"):
        se.train_als(holdout.train, callback=callback)


def test_factors_that_are_no_longer_finite(family: str, holdout: Any) -> None:
    def spoil(*told: Any) -> None:
        if told[0] == 4:
            model.user_factors[17, 2] = np.nan
        watch(*told)

    model = make(family)
    callback = evaluating(holdout)
    watch = callback.on(model)
    with pytest.raises(InvalidDataError, match="user_factors, row 17 is not finite"):
        model.fit(holdout.train, show_progress=False, callback=spoil)
    assert callback.history.index.tolist() == [1, 2, 3, 4]


# What is refused


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"every": 0}, InvalidDataError, "every: expected a whole number of at least 1, found 0"),
        ({"every": 1.5}, InvalidDataError, "every: expected"),
        ({"patience": 0}, InvalidDataError, "patience: expected a whole number of at least 1"),
        ({"patience": True}, InvalidDataError, "patience: expected"),
        ({"metrics": "ndgc@10"}, InvalidMetricError, "no metric 'ndgc'; did you mean 'ndcg'"),
        ({"metrics": ["ndcg@10", "map"]}, InvalidMetricError, "map has no cut-off"),
        ({"metrics": []}, InvalidMetricError, "no metric is asked for"),
        ({"metrics": ["ndcg@10", "calibration@5"]}, InvalidMetricError, "needs item_groups"),
        ({"metrics": ["ndcg@5", "map@5"]}, InvalidMetricError,
         "monitor is 'ndcg@10', which is not among the metrics; expected one of ndcg@5, map@5"),
        ({"monitor": "recall@{5,10}"}, InvalidMetricError, "monitor is 'recall@{5,10}'"),
        ({"monitor": "recal@5"}, InvalidMetricError, "no metric 'recal'"),
        ({"log": "mlflow"}, InvalidDataError, "log is 'mlflow'; expected a function"),
    ],
)  # fmt: skip
def test_options_that_are_none(
    holdout: Any, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=re.escape(says)):
        evaluating(holdout, **options)


def test_data_that_are_none(holdout: Any, tmp_path: Path) -> None:
    larger = holdout.validation.copy()
    larger.resize((N_USERS, N_ITEMS + 1))
    for truth in (larger, se.Relevance.from_csr(larger)):
        with pytest.raises(InvalidDataError, match=r"validation has shape \(120, 41\), train"):
            EvaluationCallback(holdout.train, truth, "ndcg@10")
    with pytest.raises(InvalidDataError, match="validation has no relevant item"):
        EvaluationCallback(holdout.train, holdout.validation * 0, "ndcg@10")
    wrong = holdout.train.copy()
    wrong.data[3] = np.nan
    with pytest.raises(InvalidDataError, match="the train matrix holds nan in row"):
        EvaluationCallback(wrong, holdout.validation, "ndcg@10")
    file = tmp_path / "file"
    file.write_text("not a folder")
    with pytest.raises(OutputError, match=f"{file}: cannot be used as an output folder"):
        evaluating(holdout, checkpoint_dir=file)
    assert file.read_text() == "not a folder"


def test_models_that_are_none(family: str, holdout: Any) -> None:
    callback = evaluating(holdout)
    model = make(family)
    with pytest.raises(UnsupportedModelError, match=r"callback=callback\.on\(model\)"):
        model.fit(holdout.train, show_progress=False, callback=callback)
    for thing in (CosineRecommender(), object(), None):
        for tell in (callback.on, callback.fit):
            with pytest.raises(UnsupportedModelError, match="is not trained in iterations"):
                tell(thing)


def test_matrices_of_others(family: str, holdout: Any) -> None:
    callback = evaluating(holdout)
    part = holdout.train[:, :-1]
    model = make(family, 2)
    with pytest.raises(InvalidDataError, match="train has 40 items, the model 39"):
        model.fit(part, show_progress=False, callback=callback.on(model))
    for tell in (callback.on, callback.fit):
        with pytest.raises(InvalidDataError, match=r"fitted to 120 users and 39 items, train has"):
            tell(model)
    with pytest.raises(InvalidDataError, match=r"train has shape \(120, 39\), the callback's"):
        callback.fit(make(family, 2), part)


# Training ALS


def test_train_als_with_a_callback(holdout: Any) -> None:
    settings = {"factors": 16, "regularization": 0.001, "seed": 4}
    plain = [se.train_als(holdout.train, iterations=n, **settings) for n in range(1, 13)]
    curve = [
        se.evaluate_model(model, holdout.train, holdout.validation, METRICS).mean()
        for model in plain
    ]
    callback = evaluating(holdout)
    model = se.train_als(holdout.train, iterations=12, callback=callback, **settings)
    assert bits(model) == bits(plain[-1])
    assert callback.history[METRICS].to_dict("records") == curve
    done, best = stop_of([row["ndcg@10"] for row in curve], 2)
    callback = evaluating(holdout, patience=2)
    model = se.train_als(holdout.train, iterations=12, callback=callback, **settings)
    assert len(callback.history) == done
    assert bits(model) == bits(plain[best - 1])


def test_train_als_is_weighted_by_its_own_matrix(holdout: Any) -> None:
    weighted = holdout.train.copy()
    weighted.data = np.log1p(weighted.data + np.arange(len(weighted.data)) % 7)
    expected = se.train_als(weighted, factors=4, iterations=3)
    found = se.train_als(weighted, factors=4, iterations=3, callback=evaluating(holdout))
    assert bits(found) == bits(expected)
    unweighted = se.train_als(holdout.train, factors=4, iterations=3)
    assert bits(found) != bits(unweighted)
    with pytest.raises(InvalidDataError, match="train has shape") as error:
        se.train_als(holdout.train[:-1], callback=evaluating(holdout))
    assert "diverged" not in str(error.value)


@pytest.mark.parametrize("with_callback", [False, True])
def test_train_als_of_a_matrix_that_cannot_be_written_to(holdout: Any, with_callback: bool) -> None:
    single = holdout.train.astype(np.float32)
    single.data.flags.writeable = False
    callback = evaluating(holdout) if with_callback else None
    found = se.train_als(single, factors=4, alpha=1.0, iterations=2, callback=callback)
    assert bits(found) == bits(se.train_als(holdout.train, factors=4, alpha=1.0, iterations=2))


def test_train_als_that_diverges_under_a_callback(holdout: Any) -> None:
    callback = evaluating(holdout)
    with pytest.raises(SparseEvalError, match="not finite; train again with a lower alpha"):
        se.train_als(holdout.train * 1e30, factors=4, alpha=1e30, iterations=2, callback=callback)
    assert callback.history.empty


def test_the_progress_bar_shows_the_metric(holdout: Any, capsys: Any) -> None:
    callback = evaluating(holdout, patience=4)
    se.train_als(
        holdout.train, 16, regularization=0.001, iterations=100, callback=callback, progress=True
    )
    shown = capsys.readouterr().err
    value = f"{callback.history['ndcg@10'].iloc[-1]:.4f}"
    assert f"{len(callback.history)}/100" in shown
    assert f"ndcg@10={value}, best after={callback.best_iteration}" in shown
    assert "recommend" not in shown
    callback = evaluating(holdout)
    callback.fit(make("als", calculate_training_loss=True), progress=True)
    shown = capsys.readouterr().err
    assert "12/12" in shown
    assert f"loss={callback.history['loss'].iloc[-1]:.4f}, ndcg@10=" in shown
    evaluating(holdout).fit(make("als"))
    evaluating(holdout).fit(make("als"), progress=False)
    assert capsys.readouterr().err == ""


# A model elsewhere: what implicit's GPU models offer, with the arithmetic of the CPU


class DeviceMatrix:
    """Made of an array, and neither indexed nor copied as one."""

    def __init__(self, array: np.ndarray) -> None:
        assert isinstance(array, np.ndarray)
        self._array = array.copy()

    def to_numpy(self) -> np.ndarray:
        return self._array.copy()


class DeviceModel:
    """Trains in iterations, holds device matrices, and can be moved to the CPU."""

    def __init__(self, iterations: int) -> None:
        self.iterations = iterations
        self.user_factors: DeviceMatrix | None = None
        self.item_factors: DeviceMatrix | None = None
        self._item_norms_host: object = "of other factors"

    def to_cpu(self) -> Any:
        model = make("bpr", 1)
        if self.user_factors is not None and self.item_factors is not None:
            model.user_factors = self.user_factors.to_numpy()
            model.item_factors = self.item_factors.to_numpy()
        return model

    def fit(self, train: Any, show_progress: bool = True, callback: Any = None) -> None:
        whole = make("bpr", self.iterations)

        def after(*told: Any) -> None:
            self.user_factors = DeviceMatrix(whole.user_factors)
            self.item_factors = DeviceMatrix(whole.item_factors)
            callback(*told)

        whole.fit(train, show_progress=show_progress, callback=after)


def test_a_model_on_a_device(holdout: Any, tmp_path: Path, curves: dict[str, Any]) -> None:
    done, best = stop_of([row["ndcg@10"] for row in curves["bpr"]], 3)
    callback = evaluating(holdout, patience=3, checkpoint_dir=tmp_path)
    model = callback.fit(DeviceModel(ITERATIONS))
    assert callback.history[METRICS].to_dict("records") == curves["bpr"][:done]
    assert isinstance(model.item_factors, DeviceMatrix)
    assert model._item_norms_host is None
    assert bits(model.to_cpu()) == bits(trained("bpr", holdout, best))
    assert bits(read_checkpoint(tmp_path / f"iteration_{done:04d}.npz")) == bits(
        trained("bpr", holdout, done)
    )
    callback.on(model)  # a warm start: its size is that of the model on the CPU
    with pytest.raises(InvalidDataError, match="fitted to 120 users and 40 items"):
        EvaluationCallback(holdout.train[:, :30], holdout.validation[:, :30], "ndcg@10").on(model)
