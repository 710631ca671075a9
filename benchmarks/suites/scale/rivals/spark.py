"""Time our evaluation of Spark tables and the one of Spark's own mllib, in one local session.

Both read recs.parquet (user, item, rank) and truth.parquet (user, item), and compute the same four
numbers, in turn, three times after a warm-up. Mllib's pairs of lists are grouped and joined by
DataFrames and cached, because each of its metrics reads them again.
"""

import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from harness.values import difference
from pyspark.mllib.evaluation import RankingMetrics
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import sparse_eval as se

THREADS, ROUNDS, K = 2, 3, 10
TABLES = ("recs", "truth")

# The names of the metrics in mllib, and here.
METRICS = {
    "ndcgAt": f"ndcg@{K}",
    "precisionAt": f"precision@{K}",
    "recallAt": f"recall@{K}",
    "meanAveragePrecisionAt": f"map@{K}",
}


def start() -> SparkSession:
    """Return a session on this machine."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    options = {
        "spark.ui.enabled": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    builder = SparkSession.builder.master(f"local[{THREADS}]").appName("scale")
    session = builder.config(map=options).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def ours(session: SparkSession, recs: Any, truth: Any) -> dict[str, float]:
    asked = list(METRICS.values())
    ev = se.evaluate(recs, truth, asked, convention="spark", client=session)
    return {theirs: float(ev[name]) for theirs, name in METRICS.items()}


def mllib(recs: Any, truth: Any) -> dict[str, float]:
    """Evaluate with mllib as documented, on an RDD of pairs of lists."""
    lists = recs.groupBy("user").agg(
        f.array_sort(f.collect_list(f.struct("rank", "item"))).alias("ranked")
    )
    sets = truth.groupBy("user").agg(f.collect_list("item").alias("relevant"))
    joined = lists.join(sets, "user", "full_outer").select(
        f.coalesce(f.col("ranked.item"), f.array().cast("array<int>")).alias("predicted"),
        f.coalesce(f.col("relevant"), f.array().cast("array<int>")).alias("relevant"),
    )
    pairs = joined.rdd.map(lambda row: (row.predicted, row.relevant)).cache()
    try:
        metrics = RankingMetrics(pairs)
        return {name: float(getattr(metrics, name)(K)) for name in METRICS}
    finally:
        pairs.unpersist()


def measure(folder: str) -> dict[str, Any]:
    """Measure, and return the results."""
    session = start()
    paths = [Path(folder, f"{name}.parquet") for name in TABLES]

    def frames() -> list[Any]:
        return [session.read.parquet(str(path)) for path in paths]

    contestants = {
        "sparse_eval": lambda: ours(session, *paths),  # its workers read the files
        "sparse_eval, DataFrames": lambda: ours(session, *frames()),  # Spark reads and shuffles
        "mllib": lambda: mllib(*frames()),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    values: dict[str, dict[str, float]] = {}
    for turn in range(ROUNDS + 1):
        for name, evaluate in contestants.items():
            began = time.perf_counter()
            values[name] = evaluate()
            took = time.perf_counter() - began
            print(f"{name}: {took:.2f} s" + ("" if turn else " (warm-up)"), file=sys.stderr)
            if turn:
                seconds[name].append(took)
    session.stop()
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    return {
        "threads": THREADS,
        "convention": "spark",
        "values": values,
        "largest_difference": max(difference(values["mllib"], one) for one in values.values()),
        "seconds": seconds,
        "medians": medians,
        "ratios": {name: medians["mllib"] / seconds for name, seconds in medians.items()},
    }
