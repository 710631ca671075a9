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
from merge_cases import needs_of, same_bits, same_numbers, same_random
from tables_cases import damage_pages, saved_csr
from ways_cases import check_against_plain, make_case
from ways_cases import same as same_by_every_way

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError, MissingExtraError
from sparse_eval.evaluation import parquet, spark
from sparse_eval.evaluation.run import evaluate_task
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

#: Those with a value for each user, which depend on nothing but the lists and what is relevant.
ACCURACY = [
    d.name + ("" if d.cutoff == "none" else "@3")
    for d in REGISTRY.values()
    if d.per_user and not needs_of(d)
] + ["ndcg@10", "ndcg(gain=exp)@5", "map(normalizer=min)@10"]

CATALOGUE = ["coverage@2", "gini@5", "entropy@5", "auc", "auc@5", "recall(average=micro)@3"]


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


def tables(n_users=200, *, gains=False, seed=0):
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


def written(folder, recs, truth):
    paths = []
    for name, table in (("recs", recs), ("truth", truth)):
        path = folder / f"{name}.parquet"
        table.to_parquet(path, index=False)
        paths.append(str(path))
    return paths


def assert_same(found, expected):
    """Every number of the summary, to the last bit, and those of the users, if both have them."""
    pd.testing.assert_frame_equal(found.summary(), expected.summary(), check_exact=True)
    same_numbers(found, expected)
    if found.has_values:
        same_bits(found, expected)


def frames_of(session, paths):
    return [session.read.parquet(path) for path in paths]


@pytest.mark.parametrize("metrics", [ACCURACY, CATALOGUE], ids=["accuracy", "catalogue"])
def test_paths_and_frames(session, tmp_path, monkeypatch, metrics):
    recs, truth = tables()
    paths = written(tmp_path, recs.drop(columns="score"), truth)
    expected = se.evaluate(*paths, metrics)
    frames = frames_of(session, paths)
    assert_same(se.evaluate(*frames, metrics), expected)
    assert_same(se.evaluate(frames[0], paths[1], metrics), expected)
    assert_same(se.evaluate(*frames, metrics, client=session, keep="totals"), expected)
    assert_same(se.evaluate(*paths, metrics, client=session), expected)  # of one range of users
    monkeypatch.setattr(parquet, "ROWS_PER_TASK", 100)  # in no order: Spark shuffles
    source = mock.patch.object(spark, "SparkSource", wraps=spark.SparkSource)
    with source as shuffled:
        assert_same(se.evaluate(*paths, metrics, client=session), expected)
    shuffled.assert_called_once()
    with pytest.raises(InvalidDataError, match="were not kept"):
        _ = se.evaluate(*frames, "ndcg@3", keep="totals").per_user


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


def test_a_model_and_matrices(session, tmp_path):
    clicks = se.datasets.synthetic(n_users=120, n_items=60, seed=0)
    holdout = se.split.random(clicks, seed=0)
    model = se.train_als(holdout.train.csr, factors=4, iterations=2)
    # Without ids, which matrices on disk do not have either.
    sides = tuple(part.csr for part in (holdout.train, holdout.validation))
    metrics = ["ndcg@5", "coverage@5", "recall(average=micro)@5"]
    expected = se.evaluate_model(model, *sides, metrics)
    folders = [saved_csr(tmp_path / str(n), side) for n, side in enumerate(sides)]
    model.save(tmp_path / "als.npz")
    for given in ((model, *sides), (tmp_path / "als.npz", *folders)):
        found = se.evaluate_model(*given, metrics, client=session)
        same_bits(found, expected)
        same_random(found, expected)
        assert found.retrieval == expected.retrieval
    positions = expected.rankings.to_positions()
    found = se.evaluate(positions, holdout.validation, metrics, client=session)
    same_bits(found, se.evaluate(positions, holdout.validation, metrics))


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


def test_text_ids_scores_with_ties_and_gains(session, tmp_path):
    recs, truth = tables(gains=True)
    for table in (recs, truth):
        table["item"] = "Ü" + table["item"].astype(str)
        table["user"] = "user " + table["user"].astype(str)
    of_recs = {"user": "who", "item": "a `b`.c", "score": "rank"}
    of_truth = {"user": "item", "item": "user", "gain": "who"}
    recs = recs.drop(columns="rank").rename(columns=of_recs)
    truth = truth.rename(columns=of_truth)
    frames = [session.createDataFrame(table) for table in (recs, truth)]
    paths = written(
        tmp_path,
        *(
            table.rename(columns={new: old for old, new in names.items()})
            for table, names in ((recs, of_recs), (truth, of_truth))
        ),
    )
    metrics = ["ndcg@10", "ndcg(gain=exp)@3", "err@5", "rbp(gain=linear)@5", "gini@5"]
    scans = se.Rankings.scan(frames[0], **of_recs), se.Relevance.scan(frames[1], **of_truth)
    found = se.evaluate(*scans, metrics)
    expected = se.evaluate(*paths, metrics)
    assert_same(found, expected)
    pd.testing.assert_frame_equal(found.per_user, expected.per_user, check_exact=True)


def test_propensities_by_item(session, tmp_path):
    recs, truth = (table.drop(columns="score", errors="ignore") for table in tables())
    for table in (recs, truth):
        table["item"] = "Ü" + table["item"].astype(str)
    items = np.unique(np.concatenate((recs["item"], truth["item"])))
    p = pd.Series(np.linspace(0.05, 1, len(items)), items)
    metrics = ["psp(propensity=given)@3", "ndcg(weights=snips)@3", "ndcg@3"]
    paths = written(tmp_path, recs, truth)
    expected = se.evaluate(*paths, metrics, items=se.ItemData(propensity=p))
    assert_same(
        se.evaluate(*frames_of(session, paths), metrics, items=se.ItemData(propensity=p)), expected
    )
    found = se.evaluate(*paths, metrics, client=session, items=se.ItemData(propensity=p.to_dict()))
    assert_same(found, expected)
    assert found.propensities == expected.propensities
    with pytest.raises(InvalidDataError, match="propensity has no entry for item"):
        se.evaluate(*frames_of(session, paths), metrics, items=se.ItemData(propensity=p[:-1]))


def test_whole_numbers_of_any_width(session, tmp_path):
    recs, truth = tables()
    recs = recs.drop(columns="score").astype({"user": np.int32, "item": np.int64})
    truth = truth.astype({"user": np.int64, "item": np.int16})
    recs["user"] += 2**31 - 10**6
    truth["user"] += 2**31 - 10**6
    paths = written(tmp_path, recs, truth)
    found = se.evaluate(*frames_of(session, paths), "ndcg@{3,10}")
    assert_same(found, se.evaluate(*paths, "ndcg@{3,10}"))


def test_empty_tables_and_many_partitions(session, tmp_path):
    recs, truth = tables(3)
    paths = written(tmp_path, recs.drop(columns="score"), truth)
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
        se.evaluate(frames[0], frames[1].limit(0), "ndcg@3")
    with pytest.raises(InvalidDataError, match="nothing to evaluate"):
        se.evaluate(frames[0].limit(0), frames[1].limit(0), "ndcg@3")


def no_job(*_):
    pytest.fail("a job ran")


def test_types_are_compared_before_any_job(session, monkeypatch):
    recs, truth = (session.createDataFrame(table) for table in tables(3))
    text = truth.selectExpr("user", "CAST(item AS string) AS item")
    for name in ("item_columns", "largest_gain"):
        monkeypatch.setattr(spark.SparkSource, name, no_job)
    monkeypatch.setattr(spark.SparkRunner, "run", no_job)
    ranked = se.Rankings.scan(recs, rank="rank")
    with pytest.raises(
        InvalidDataError,
        match="'item' has type int64 in the recommendations, but column 'item' has type string",
    ):
        se.evaluate(ranked, text, "ndcg@3")
    for dtype, found in (("double", "double"), ("timestamp", "timestamp.us"), ("float", "float")):
        other = truth.selectExpr(f"CAST(user AS {dtype}) AS user", "item")
        with pytest.raises(
            InvalidDataError, match=f"relevant items: column 'user' has type {found}"
        ):
            se.evaluate(ranked, other, "coverage@3")
    with pytest.raises(InvalidDataError, match="column 'rank' holds string; expected numbers"):
        se.evaluate(recs.selectExpr("user", "item", "'a' AS rank"), truth, "err@3")
    with pytest.raises(InvalidDataError, match="the tables are of pandas, pyspark; pass both sid"):
        se.evaluate(tables(3)[0], truth, "ndcg@3")


@pytest.mark.parametrize(
    ("recs", "truth", "message"),
    [
        ("user, item, IF(rank = 3, NULL, rank) AS rank", "user, item", "'rank' is empty .null. in"),
        ("user, item, 1 AS rank", "user, item", "position 1 twice"),
        ("user, item, rank", "user, item, -item AS gain", "a finite number of at least 0"),
    ],
)
def test_rows_that_cannot_be_used(session, recs, truth, message):
    frames = []
    for table, columns in zip(tables(20), (recs, truth), strict=True):
        session.createDataFrame(table).createOrReplaceTempView("rows")
        frames.append(session.sql(f"SELECT {columns} FROM rows"))  # noqa: S608 - written here
    with pytest.raises(InvalidDataError, match=message) as raised:
        se.evaluate(*frames, "ndcg@3")
    assert "\n" not in str(raised.value)


def test_paths_that_cannot_be_read(session, tmp_path):
    recs, truth = tables(3)
    paths = written(tmp_path, recs, truth)
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    (nowhere / "part.parquet").write_bytes(b"PAR1 no table")
    with pytest.raises(
        InvalidFileError, match="nowhere.*Spark cannot read it as Parquet"
    ) as raised:
        se.evaluate(nowhere, session.read.parquet(paths[1]), "ndcg@3")
    assert "\n" not in str(raised.value)


def test_workers_of_another_version(session, monkeypatch):
    recs, truth = (session.createDataFrame(table) for table in tables(3))
    monkeypatch.setattr(spark, "version", lambda _: "0.0.7")
    with pytest.raises(InvalidDataError, match="have sparse_eval .*, and the driver 0.0.7; inst"):
        se.evaluate(se.Rankings.scan(recs, rank="rank"), truth, "ndcg@3")


def test_workers_without_sparse_eval(tmp_path):
    from pyspark import cloudpickle

    task = spark._in_worker((evaluate_task, None, None))
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
    printed = in_own_process(code, tmp_path)
    assert "'error': 'MissingExtraError'" in printed
    assert "have no sparse_eval, and the driver" in printed


def test_workers_without_arrow(session, monkeypatch):
    def lacking(batches):
        raise ModuleNotFoundError("No module named 'pyarrow'")

    def broken(batches):
        raise ModuleNotFoundError("No module named 'theirs'")

    from pyspark.errors import PySparkException

    runner, task = spark.SparkRunner(session), (None, 1)
    monkeypatch.setattr(spark, "_in_worker", lambda shared: lacking)
    with pytest.raises(MissingExtraError, match="Spark have no pyarrow; install"):
        list(runner.run(print, None, [task]))
    monkeypatch.setattr(spark, "_in_worker", lambda shared: broken)
    with pytest.raises(PySparkException, match="theirs"):
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
    recs, truth = tables(gains=True)
    paths = written(tmp_path, recs.drop(columns="score"), truth)
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
