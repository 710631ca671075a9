"""Tables in Spark: the numbers of `evaluate`, to the last bit, and clear errors."""

import os
import shutil
import subprocess
import sys
import textwrap
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from merge_cases import needs_of, same_bits, same_numbers
from tables_cases import check_model, damage_pages, make_tables
from ways_cases import check_against_plain, make_case
from ways_cases import same as same_by_every_way

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError, MissingExtraError, WorkerError
from sparse_eval.evaluation import parquet, spark
from sparse_eval.metrics import REGISTRY

pytest.importorskip("pyspark", reason='pyspark is not installed: pip install "sparse_eval[spark]"')
if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("there is no Java, which Spark runs on", allow_module_level=True)

from pyspark.sql import SparkSession

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

METRICS = [
    d.name + ("" if d.cutoff == "none" else "@3")
    for d in REGISTRY.values()
    if d.per_user and not needs_of(d)
] + ["ndcg(gain=exp)@5", "map(normalizer=min)@10", "auc@5", "recall(average=micro)@3"]
METRICS += ["coverage@2", "gini@5", "entropy@5"]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
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


def written(folder, recs, truth):
    paths = [str(folder / "recs.parquet"), str(folder / "truth.parquet")]
    for path, table in zip(paths, (recs, truth), strict=True):
        table.to_parquet(path, index=False)
    return paths


def assert_same(found, expected):
    """Every number of the summary, to the last bit, and those of the users, if both have them."""
    pd.testing.assert_frame_equal(found.summary(), expected.summary(), check_exact=True)
    same_numbers(found, expected)
    if found._part.values is not None:
        same_bits(found, expected)


def frames_of(session, paths):
    return [session.read.parquet(path) for path in paths]


def test_paths_and_frames(session, tmp_path, monkeypatch):
    paths = written(tmp_path, *make_tables())
    expected = se.evaluate(*paths, METRICS)
    frames = frames_of(session, paths)
    assert_same(se.evaluate(*frames, METRICS), expected)
    assert_same(se.evaluate(frames[0], paths[1], METRICS), expected)
    assert_same(se.evaluate(*frames, METRICS, client=session, keep="totals"), expected)
    assert_same(se.evaluate(*paths, METRICS, client=session), expected)  # of one range of users
    monkeypatch.setattr(parquet, "ROWS_PER_TASK", 100)  # in no order: Spark shuffles
    with mock.patch.object(spark, "SparkSource", wraps=spark.SparkSource) as shuffled:
        assert_same(se.evaluate(*paths, METRICS, client=session), expected)
    shuffled.assert_called_once()


@pytest.mark.parametrize(
    ("convention", "kind"),
    [("mind-notebook", "gaps"), ("trec_eval", "ties"), ("rectools", "ranks"), ("implicit", "ties")],
)
def test_frames_give_the_number_of_every_way(session, convention, kind):
    case = make_case(11, kind=kind, n_users=20).accepted(convention)
    metrics, options = case.metrics(convention), {"convention": convention}
    expected = se.evaluate(case.positions, case.validation, metrics, **options)
    check_against_plain(expected, case)
    frames = [
        session.createDataFrame(frame.sample(frac=1, random_state=0)) for frame in case.tables
    ]
    same_by_every_way(se.evaluate(*frames, metrics, **options), expected)


def test_a_model_and_matrices(session, data, tmp_path):
    check_model(session, data, tmp_path)
    ids = se.top_k(data[0], 5).ids
    positions = se.Rankings.from_topk(ids, shape=data[2].shape).to_positions()
    found = se.evaluate(positions, data[2], "mrr", client=session)
    same_bits(found, se.evaluate(positions, data[2], "mrr"))


def in_own_process(code, folder):
    """Run a script that starts a session of its own, and return what it prints."""
    local = {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=folder,
        env=os.environ | local,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def text_tables(**options):
    tables = make_tables(**options)
    for table in tables:
        table["item"] = "Ü" + table["item"].astype(str)
        table["user"] = "user " + table["user"].astype(str)
    return tables


def test_text_ids_scores_with_ties_and_gains(session, tmp_path):
    tables = text_tables(order="score", gains=True)
    names = (
        {"user": "who", "item": "a `b`.c", "score": "rank"},
        {"user": "item", "item": "user", "gain": "who"},
    )
    frames = [
        session.createDataFrame(table.rename(columns=of))
        for table, of in zip(tables, names, strict=True)
    ]
    metrics = ["ndcg@10", "ndcg(gain=exp)@3", "err@5", "rbp(gain=linear)@5", "gini@5"]
    scans = se.Rankings.scan(frames[0], **names[0]), se.Relevance.scan(frames[1], **names[1])
    found, expected = (
        se.evaluate(*scans, metrics),
        se.evaluate(*written(tmp_path, *tables), metrics),
    )
    assert_same(found, expected)
    pd.testing.assert_frame_equal(found.per_user, expected.per_user, check_exact=True)


def test_propensities_by_item(session, tmp_path):
    recs, truth = text_tables()
    items = np.unique(np.concatenate((recs["item"], truth["item"])))
    p = pd.Series(np.linspace(0.05, 1, len(items)), items)
    metrics = ["psp(propensity=given)@3", "ndcg(weights=snips)@3", "ndcg@3"]
    paths = written(tmp_path, recs, truth)
    frames, data = frames_of(session, paths), se.ItemData(propensity=p)
    expected = se.evaluate(*paths, metrics, item_data=data)
    assert_same(se.evaluate(*frames, metrics, item_data=data), expected)
    found = se.evaluate(*paths, metrics, client=session, item_data=data)
    assert_same(found, expected)
    assert found._part.key["propensities"] == expected._part.key["propensities"]
    with pytest.raises(InvalidDataError, match="propensity has no entry for item"):
        se.evaluate(*frames, metrics, item_data=se.ItemData(propensity=p[:-1]))


def test_whole_numbers_of_any_width(session, tmp_path):
    recs, truth = make_tables()
    recs, truth = recs.astype({"user": np.int32}), truth.astype({"item": np.int16})
    recs["user"] += 2**31 - 10**6
    truth["user"] += 2**31 - 10**6
    paths = written(tmp_path, recs, truth)
    found = se.evaluate(*frames_of(session, paths), "ndcg@{3,10}")
    assert_same(found, se.evaluate(*paths, "ndcg@{3,10}"))


def test_empty_tables_and_many_partitions(session, tmp_path):
    paths = written(tmp_path, *make_tables(3))
    session.conf.set("spark.sql.adaptive.enabled", "false")  # partitions without a user stay
    try:
        expected = se.evaluate(*paths, ["ndcg@3", "coverage@3"])
        session.conf.set("spark.sql.shuffle.partitions", "12")
        frames = frames_of(session, paths)
        assert_same(se.evaluate(*frames, ["ndcg@3", "coverage@3"]), expected)
    finally:
        session.conf.set("spark.sql.adaptive.enabled", "true")
        session.conf.set("spark.sql.shuffle.partitions", "3")
    none = se.evaluate(frames[0].limit(0), frames[1], ["ndcg@3", "coverage@3"])
    assert list(none.mean().values()) == [0.0, 0.0]
    assert none.n_users == 3
    with pytest.raises(InvalidDataError, match="none of the 3 users has a relevant item"):
        se.evaluate(frames[0], frames[1].limit(0), "ndcg@3").mean()
    with pytest.raises(InvalidDataError, match="nothing to evaluate"):
        se.evaluate(frames[0].limit(0), frames[1].limit(0), "ndcg@3")


def no_job(*_):
    pytest.fail("a job ran")


def test_types_are_compared_before_any_job(session, monkeypatch):
    recs, truth = (session.createDataFrame(table) for table in make_tables(3))
    text = truth.selectExpr("user", "CAST(item AS string) AS item")
    for name in ("item_columns", "largest_gain"):
        monkeypatch.setattr(spark.SparkSource, name, no_job)
    monkeypatch.setattr(spark.SparkRunner, "run", no_job)
    with pytest.raises(
        InvalidDataError,
        match="'item' holds whole numbers in the recommendations, but column 'item' holds text",
    ):
        se.evaluate(recs, text, "ndcg@3")
    for dtype, found in (("double", "double"), ("timestamp", "timestamp.us")):
        other = truth.selectExpr(f"CAST(user AS {dtype}) AS user", "item")
        with pytest.raises(
            InvalidDataError, match=f"relevant items: column 'user' has type {found}"
        ):
            se.evaluate(recs, other, "coverage@3")
    with pytest.raises(InvalidDataError, match="column 'rank' holds string; expected numbers"):
        se.evaluate(recs.selectExpr("user", "item", "'a' AS rank"), truth, "err@3")
    with pytest.raises(InvalidDataError, match="the tables are of pandas, pyspark; pass both sid"):
        se.evaluate(make_tables(3)[0], truth, "ndcg@3")


def test_rows_that_cannot_be_used(session):
    recs, truth = (session.createDataFrame(table) for table in make_tables(20))
    for lists, gains, message in (
        (
            recs.selectExpr("user", "item", "IF(rank = 3, NULL, rank) AS rank"),
            truth,
            "'rank' is em",
        ),
        (recs.selectExpr("user", "item", "1 AS rank"), truth, "position 1 twice"),
        (recs, truth.selectExpr("user", "item", "-item AS gain"), "a finite number of at least 0"),
    ):
        with pytest.raises(InvalidDataError, match=message) as raised:
            se.evaluate(lists, gains, "ndcg@3")
        assert "\n" not in str(raised.value)


def test_paths_that_cannot_be_read(session, tmp_path):
    paths = written(tmp_path, *make_tables(3))
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    (nowhere / "part.parquet").write_bytes(b"PAR1 no table")
    with pytest.raises(InvalidFileError, match="part.parquet: cannot be read") as raised:
        se.evaluate(nowhere, session.read.parquet(paths[1]), "ndcg@3")
    assert "\n" not in str(raised.value)


def test_workers_of_another_version(session, monkeypatch):
    frames = [session.createDataFrame(table) for table in make_tables(3)]
    monkeypatch.setattr(spark, "installed_version", lambda: "0.0.7")
    with pytest.raises(WorkerError, match="has sparse_eval .*, but the client has 0.0.7; inst"):
        se.evaluate(*frames, "ndcg@3")


def test_workers_without_a_package(session, monkeypatch):
    from pyspark.errors import PySparkException

    runner, task = spark.SparkRunner(session), (None, 1)
    for name, error, message in (
        ("sparse_eval", MissingExtraError, "Spark have no sparse_eval; install"),
        ("pyarrow", MissingExtraError, "Spark have no pyarrow; install"),
        ("theirs", PySparkException, "theirs"),
    ):

        def work(*_, name=name):
            raise ModuleNotFoundError(f"No module named '{name}'")

        monkeypatch.setattr(spark, "run_in_worker", work)
        with pytest.raises(error, match=message):
            list(runner.run(print, None, [task]))


def test_blocks_of_complete_users(monkeypatch):
    import pyarrow as pa

    monkeypatch.setattr(spark, "ROWS_AT_ONCE", 10)
    rng = np.random.default_rng(0)
    for users in (np.sort(rng.integers(0, 30, 300)), np.sort(rng.integers(0, 3, 300)), []):
        table = pa.table({"user": pa.array(users, pa.int64())})
        for n_rows in (1, 4, 50):
            found = list(spark._complete_users(iter(table.to_batches(n_rows)), "user"))
            assert [u for block in found for u in block["user"].to_pylist()] == list(users)
            of_blocks = [set(block["user"].to_pylist()) for block in found]
            assert sum(map(len, of_blocks)) == len(set(users))


@pytest.mark.parametrize("start", ["master", "remote"])
def test_a_session_of_its_own_that_is_stopped(tmp_path, start):
    if start == "remote":
        pytest.importorskip("grpc", reason="Spark Connect takes grpcio")
    paths = written(tmp_path, *make_tables(gains=True))
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    metrics = ["ndcg@10", "gini@5", "err@5"]
    code = f"""
        import sparse_eval as se
        from pyspark.sql import SparkSession
        from sparse_eval.errors import InvalidDataError, InvalidFileError

        builder = SparkSession.builder.{start}("local[2]")
        for name, value in {SETTINGS!r}.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        assert ("connect" in type(session).__module__) == ({start!r} == "remote")
        frames = [session.read.parquet(path) for path in {paths!r}]
        for sides in ({paths!r}, frames, (frames[0], {paths[1]!r})):
            ev = se.evaluate(*sides, {metrics!r}, client=session)
            print([value.hex() for value in ev.mean().values()])
        try:
            se.evaluate(frames[0].selectExpr("user", "item", "1 AS rank"), frames[1], "ndcg@3")
        except InvalidDataError as error:
            print(error)
        try:
            se.evaluate(*{[str(path) for path in damage_pages(damaged)]!r}, "mrr", client=session)
        except InvalidFileError as error:
            print(error)
        ev = se.evaluate(*frames, {metrics!r})
        session.stop()
        print(ev.summary()["random"].isna().all())
    """
    expected = se.evaluate(*paths, metrics).mean().values()
    lines = in_own_process(code, tmp_path).splitlines()
    assert lines[:3] == [str([value.hex() for value in expected])] * 3
    assert "position 1 twice" in lines[3]
    assert "recs.parquet: cannot be read" in lines[4]
    assert lines[-1] == "True"
