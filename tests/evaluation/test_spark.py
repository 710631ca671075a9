"""Tables in Spark: the numbers of `evaluate`, to the last bit, and clear errors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError, MissingExtraError
from sparse_eval.evaluation import spark
from sparse_eval.evaluation.spark import evaluate_table
from sparse_eval.metrics import REGISTRY

pytest.importorskip("pyspark", reason='pyspark is not installed: pip install "sparse_eval[spark]"')
pytest.importorskip("pyarrow", reason='pyarrow is not installed: pip install "sparse_eval[spark]"')
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("there is no Java, which Spark runs on", allow_module_level=True)

from pyspark.sql import DataFrame, SparkSession

pytestmark = [
    # py4j and Spark leave sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "3",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "100",  # so that users go on in the next one
    "spark.log.level": "ERROR",
}

#: Those with a value for each user, which depend on nothing but the lists and what is relevant.
ACCURACY = [
    d.name + ("" if d.cutoff == "none" else "@3")
    for d in REGISTRY.values()
    if d.per_user and not d.needs and d.name != "diversity"  # which takes train or vectors
] + ["ndcg@10", "ndcg(gain=exp)@5", "map(normalizer=min)@10"]

CATALOGUE = ["coverage@2", "gini@5", "entropy@5", "auc", "auc@5", "recall(average=micro)@3"]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        builder = SparkSession.builder.master("local[2]").appName("sparse_eval")
        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        folder = str(tmp_path_factory.mktemp("spark"))
        session = builder.config("spark.sql.warehouse.dir", folder).getOrCreate()
        yield session
        session.stop()


def tables(n_users: int = 200, *, gains: bool = False, seed: int = 0) -> tuple[Any, Any]:
    """Lists and relevant items of users, some of whom are on one side only; in any order."""
    rng = np.random.default_rng(seed)
    listed = rng.permuted(np.tile(np.arange(40), (n_users, 1)), axis=1)[:, :10]
    recs = pd.DataFrame(
        {
            "user": np.repeat(np.arange(n_users) * 3 - 60, 10),
            "item": listed.ravel(),
            "rank": np.tile(np.arange(1, 11), n_users),
            "score": rng.integers(0, 5, n_users * 10) / 4,
        }
    )
    held = rng.permuted(np.tile(np.arange(50), (n_users, 1)), axis=1)[:, :4]
    truth = pd.DataFrame({"user": np.repeat(np.arange(n_users) * 3 - 45, 4), "item": held.ravel()})
    if gains:
        truth["gain"] = rng.integers(0, 4, len(truth)).astype(np.float64)
    return tuple(table.sample(frac=1, random_state=seed) for table in (recs, truth))


def written(folder: Path, recs: Any, truth: Any) -> list[str]:
    paths = []
    for name, table in (("recs", recs), ("truth", truth)):
        path = folder / f"{name}.parquet"
        table.to_parquet(path, index=False)
        paths.append(str(path))
    return paths


def assert_same(found: se.Evaluation, expected: se.Evaluation) -> None:
    """Every number of the summary, to the last bit."""
    pd.testing.assert_frame_equal(found.summary(), expected.summary(), check_exact=True)
    assert (found.n_users, found.n_skipped) == (expected.n_users, expected.n_skipped)


@pytest.mark.parametrize("metrics", [ACCURACY, CATALOGUE], ids=["accuracy", "catalogue"])
def test_paths_and_frames(
    session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metrics: list[str]
) -> None:
    recs, truth = tables()
    recs = recs.drop(columns="score")
    paths = written(tmp_path, recs, truth)
    expected = se.evaluate(*paths, metrics)
    assert_same(evaluate_table(*paths, metrics), expected)
    frames = [session.read.parquet(path) for path in paths]
    assert_same(evaluate_table(*frames, metrics, convention=None), expected)
    with pytest.raises(InvalidDataError, match="were not kept"):
        _ = evaluate_table(*frames, "ndcg@3").per_user


def test_conventions(session: SparkSession, tmp_path: Path) -> None:
    recs, truth = tables()
    paths = written(tmp_path, recs.drop(columns="score"), truth)
    for options in ({"convention": "spark"}, {"no_relevant": "zero"}):
        expected = se.evaluate(*paths, ["ndcg@10", "precision@5"], **options)
        assert_same(evaluate_table(*paths, ["ndcg@10", "precision@5"], **options), expected)


def test_per_user(session: SparkSession, tmp_path: Path) -> None:
    recs, truth = tables()
    paths = written(tmp_path, recs.drop(columns="score"), truth)
    metrics = ["ndcg@10", "recall@3", "coverage@3"]
    found, expected = evaluate_table(*paths, metrics, per_user=True), se.evaluate(*paths, metrics)
    assert_same(found, expected)
    pd.testing.assert_frame_equal(found.per_user, expected.per_user, check_exact=True)


def test_text_ids_scores_with_ties_and_gains(session: SparkSession, tmp_path: Path) -> None:
    recs, truth = tables(gains=True)
    for table in (recs, truth):
        table["item"] = "Ü" + table["item"].astype(str)
        table["user"] = "user " + table["user"].astype(str)
    recs = recs.drop(columns="rank").rename(columns={"user": "who", "item": "a `b`.c"})
    truth = truth.rename(columns={"user": "who", "item": "a `b`.c"})
    frames = [session.createDataFrame(table) for table in (recs, truth)]
    back = {"who": "user", "a `b`.c": "item"}
    paths = written(tmp_path, recs.rename(columns=back), truth.rename(columns=back))
    metrics = ["ndcg@10", "ndcg(gain=exp)@3", "err@5", "rbp(gain=linear)@5", "gini@5"]
    found = evaluate_table(*frames, metrics, user="who", item="a `b`.c", per_user=True)
    expected = se.evaluate(*paths, metrics)
    assert_same(found, expected)
    pd.testing.assert_frame_equal(found.per_user, expected.per_user, check_exact=True)


def test_whole_numbers_of_any_width(session: SparkSession, tmp_path: Path) -> None:
    recs, truth = tables()
    recs = recs.drop(columns="score").astype({"user": np.int32, "item": np.int64})
    truth = truth.astype({"user": np.int64, "item": np.int16})
    recs["user"] += 2**31 - 10**6
    truth["user"] += 2**31 - 10**6
    paths = written(tmp_path, recs, truth)
    assert_same(evaluate_table(*paths, "ndcg@{3,10}"), se.evaluate(*paths, "ndcg@{3,10}"))


def test_empty_tables_and_many_partitions(session: SparkSession, tmp_path: Path) -> None:
    recs, truth = tables(3)
    paths = written(tmp_path, recs.drop(columns="score"), truth)
    session.conf.set("spark.sql.adaptive.enabled", "false")  # partitions without a user stay
    try:
        expected = se.evaluate(*paths, ["ndcg@3", "coverage@3"])
        session.conf.set("spark.sql.shuffle.partitions", "12")
        assert_same(evaluate_table(*paths, ["ndcg@3", "coverage@3"]), expected)
    finally:
        session.conf.set("spark.sql.adaptive.enabled", "true")
        session.conf.set("spark.sql.shuffle.partitions", "3")
    frames = [session.read.parquet(path) for path in paths]
    none = evaluate_table(frames[0].limit(0), frames[1], ["ndcg@3", "coverage@3"])
    assert list(none.mean().values()) == [0.0, 0.0]
    assert none.n_users == 3
    with pytest.raises(InvalidDataError, match="nobody counts"):
        evaluate_table(frames[0], frames[1].limit(0), "ndcg@3")
    with pytest.raises(InvalidDataError, match="nothing to evaluate"):
        evaluate_table(frames[0].limit(0), frames[1].limit(0), "ndcg@3")


def test_a_user_with_a_million_items(session: SparkSession) -> None:
    session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
    try:
        rows = session.range(1_000_000)
        recs = rows.selectExpr("5 AS user", "id AS item", "id + 1 AS rank").union(
            session.range(10).selectExpr("id + 6 AS user", "id AS item", "1 AS rank")
        )
        truth = session.createDataFrame(pd.DataFrame({"user": [5, 6, 7], "item": [999_999, 0, 0]}))
        ev = evaluate_table(recs, truth, ["mrr", "hit_rate@10"], per_user=True)
    finally:
        session.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
    assert ev.per_user.loc[[5, 6, 7], "mrr"].tolist() == [1e-6, 1.0, 0.0]
    assert ev.n_users == 3


def no_job(*_: Any) -> Any:
    pytest.fail("a job ran")


def test_types_are_compared_before_any_job(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    recs, truth = (session.createDataFrame(table) for table in tables(3))
    text = truth.selectExpr("user", "CAST(item AS string) AS item")
    monkeypatch.setattr(spark, "_look_around", no_job)
    with pytest.raises(
        InvalidDataError, match="column 'item' holds bigint in the recommendations and string in"
    ):
        evaluate_table(recs, text, "ndcg@3", rank="rank")
    with pytest.raises(InvalidDataError, match="what is relevant: column 'user' holds double"):
        evaluate_table(
            recs, truth.selectExpr("CAST(user AS double) AS user", "item"), "ndcg@3", rank="rank"
        )
    with pytest.raises(InvalidDataError, match="column 'rank' holds string; expected numbers"):
        evaluate_table(recs.selectExpr("user", "item", "'a' AS rank"), truth, "ndcg@3")
    with pytest.raises(InvalidDataError, match="expected one column 'who'"):
        evaluate_table(recs, truth, "ndcg@3", user="who", rank="rank")
    with pytest.raises(InvalidDataError, match="both the columns 'rank' and 'score'"):
        evaluate_table(recs, truth, "ndcg@3")
    with pytest.raises(InvalidDataError, match="are a DataFrame; expected a DataFrame of Spark"):
        evaluate_table(tables(3)[0], truth, "ndcg@3")


@pytest.mark.parametrize(
    ("recs", "truth", "message"),
    [
        ("user, item, IF(rank = 3, NULL, rank) AS rank", "user, item", "'rank' is empty .null. in"),
        ("user, IF(rank = 3, NULL, item) AS item, rank", "user, item", "'item' is empty"),
        ("user, item, rank", "IF(item > 9, NULL, user) AS user, item", "'user' is empty"),
        ("user, item, rank", "user, item, CAST(NULL AS int) AS gain", "'gain' is empty"),
        ("user, item, 1 AS rank", "user, item", "rank 1 is given twice .user "),
        ("user, item, rank / 4 AS rank", "user, item", "expected a whole number of at least 1"),
        ("user, item, rank", "user, item, -item AS gain", "expected a finite number of at least 0"),
    ],
)
def test_rows_that_cannot_be_used(
    session: SparkSession, recs: str, truth: str, message: str
) -> None:
    frames: list[DataFrame] = []
    for table, columns in zip(tables(20), (recs, truth), strict=True):
        session.createDataFrame(table).createOrReplaceTempView("rows")
        frames.append(session.sql(f"SELECT {columns} FROM rows"))  # noqa: S608 - written here
    with pytest.raises(InvalidDataError, match=message) as raised:
        evaluate_table(*frames, "ndcg@3")
    assert "\n" not in str(raised.value)


def test_paths_that_cannot_be_read(session: SparkSession, tmp_path: Path) -> None:
    recs, truth = tables(3)
    paths = written(tmp_path, recs, truth)
    with pytest.raises(
        InvalidFileError, match="nowhere.*Spark cannot read it as Parquet"
    ) as raised:
        evaluate_table(tmp_path / "nowhere", paths[1], "ndcg@3", session=session)
    assert "\n" not in str(raised.value)


def test_without_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparkSession, "getActiveSession", staticmethod(lambda: None))
    with pytest.raises(InvalidDataError, match="no Spark session to read a.parquet with"):
        evaluate_table("a.parquet", "b.parquet", "ndcg@3")


def test_without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(MissingExtraError, match=r'pip install "sparse_eval\[spark\]"'):
        evaluate_table("a.parquet", "b.parquet", "ndcg@3")


def test_workers_of_another_version(session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    recs, truth = (session.createDataFrame(table) for table in tables(3))
    monkeypatch.setattr(spark, "version", lambda _: "0.0.7")
    with pytest.raises(InvalidDataError, match="have sparse_eval .*, and the driver 0.0.7; inst"):
        evaluate_table(recs, truth, "ndcg@3", rank="rank")


def test_workers_without_sparse_eval(tmp_path: Path) -> None:
    from pyspark import cloudpickle

    question = spark.Question.of("ndcg@3", None, None)
    columns = spark.Columns("user", "item", "rank", None, None)
    task = spark._task(
        "answer", tuple(question), tuple(columns), spark.Known(np.arange(3), 1.0), False, None
    )
    (tmp_path / "task").write_bytes(cloudpickle.dumps(task))
    code = """
        import importlib.metadata, sys
        from pyspark import cloudpickle

        def version(name):
            raise importlib.metadata.PackageNotFoundError(name)

        importlib.metadata.version = version
        sys.modules["sparse_eval"] = None  # it cannot be imported
        with open("task", "rb") as file:
            task = cloudpickle.load(file)
        (answer,) = task(iter([]))
        print(answer.to_pylist()[0])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert "'error': 'MissingExtraError'" in done.stdout
    assert "have no sparse_eval, and the driver" in done.stdout


def test_workers_without_arrow(session: SparkSession) -> None:
    def lacking(batches: Iterator[Any]) -> Iterator[Any]:
        raise ModuleNotFoundError("No module named 'pyarrow'")

    def broken(batches: Iterator[Any]) -> Iterator[Any]:
        raise ModuleNotFoundError("No module named 'theirs'")

    from pyspark.errors import PySparkException

    with pytest.raises(MissingExtraError, match="Spark have no pyarrow; install"):
        spark._collected(session.range(3).mapInArrow(lacking, "id long"))
    with pytest.raises(PySparkException, match="theirs"):
        spark._collected(session.range(3).mapInArrow(broken, "id long"))


def test_blocks_of_whole_users(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    monkeypatch.setattr(spark, "ROWS", 10)
    rng = np.random.default_rng(0)
    for users in (np.sort(rng.integers(0, 30, 300)), np.sort(rng.integers(0, 3, 300)), []):
        table = pa.table({"user": pa.array(users, pa.int64())})
        for n_rows in (1, 4, 50):
            found = list(spark._whole_users(iter(table.to_batches(n_rows)), "user"))
            assert [u for block in found for u in block["user"].to_pylist()] == list(users)
            of_blocks = [set(block["user"].to_pylist()) for block in found]
            assert sum(map(len, of_blocks)) == len(set(users))


def test_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect takes grpcio")
    recs, truth = tables(gains=True)
    paths = written(tmp_path, recs.drop(columns="score"), truth)
    code = f"""
        from pyspark.sql import SparkSession
        from sparse_eval.errors import InvalidDataError, InvalidFileError
        from sparse_eval.evaluation.spark import evaluate_table

        builder = SparkSession.builder.remote("local[2]")
        for name, value in {SETTINGS!r}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        assert "connect" in type(session).__module__
        ev = evaluate_table(*{paths!r}, ["ndcg@10", "gini@5", "err@5"])
        print([value.hex() for value in ev.mean().values()])
        frames = [session.read.parquet(path) for path in {paths!r}]
        ev = evaluate_table(*frames, ["ndcg@10", "gini@5", "err@5"])
        print([value.hex() for value in ev.mean().values()])
        try:
            evaluate_table(frames[0].selectExpr("user", "item", "1 AS rank"), frames[1], "ndcg@3")
        except InvalidDataError as error:
            print(error)
        try:
            evaluate_table("nowhere.parquet", frames[1], "ndcg@3")
        except InvalidFileError as error:
            print(error)
        session.stop()
    """
    local = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        env=os.environ | local,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    expected = se.evaluate(*paths, ["ndcg@10", "gini@5", "err@5"]).mean().values()
    lines = done.stdout.splitlines()
    assert lines[:2] == [str([value.hex() for value in expected])] * 2
    assert "rank 1 is given twice (user " in lines[2]
    assert "Spark cannot read it as Parquet" in lines[3]
