"""Spark 4.3.0: RankingMetrics of pairs of lists, which returns means. It needs Java 17."""

import atexit
import os
import sys
from functools import lru_cache

from pyspark import SparkConf, SparkContext
from pyspark.mllib.evaluation import RankingMetrics

os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}

METRICS = {
    "ndcg@k": "ndcgAt",
    "precision@k": "precisionAt",
    "recall@k": "recallAt",
    "map@k": "meanAveragePrecisionAt",
    "map": "meanAveragePrecision",
}


@lru_cache(maxsize=1)
def context():
    conf = SparkConf().setMaster("local[1]").set("spark.ui.enabled", "false")
    found = SparkContext(conf=conf.set("spark.driver.bindAddress", "127.0.0.1"))
    found.setLogLevel("OFF")
    atexit.register(found.stop)
    return found


@lru_cache(maxsize=1)
def ranking_metrics(case):
    pairs = zip(case.lists, map(sorted, case.relevant), strict=True)
    return RankingMetrics(context().parallelize(list(pairs), 1).cache())


def values(name, case):
    found = getattr(ranking_metrics(case), name)
    return float(found(case.k) if name.endswith("At") else found)
