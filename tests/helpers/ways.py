"""The ways from lists and relevance to an evaluation, which all give one number."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest import mock

from tables_cases import saved_csr

import sparse_eval as se
from sparse_eval.evaluation import execution

LEAST = execution.MINIMUM


@contextmanager
def small_blocks():
    """Let blocks be of two users, or of so few rows."""
    with (
        mock.patch.object(execution, "PER_USER", LEAST // 3),
        mock.patch.object(execution, "check_values_fit", return_value=0),
        mock.patch.object(execution, "check_values_fit", return_value=0),
        mock.patch("sparse_eval.evaluation.parquet.ROWS_AT_ONCE", 4),
        mock.patch("sparse_eval.evaluation.parquet.ROWS_PER_TASK", 4),
        # So that files of a few rows are enough for all rows of a case.
        mock.patch("sparse_eval.evaluation.parquet.MAX_FILES", 5_000),
    ):
        yield


def shuffled(frame):
    return frame.sample(frac=1, random_state=0)


def by_objects(case, metrics, options):
    rankings = se.Rankings.from_positions(case.positions)
    return se.evaluate(rankings, se.Relevance.from_csr(case.validation), metrics, **options)


def by_frames(case, metrics, options):
    return se.evaluate(*map(shuffled, case.tables), metrics, **options)


def by_labelled_objects(case, metrics, options):
    lists, gains = case.tables
    rankings = se.Rankings.from_frame(lists, **{lists.columns[2]: lists.columns[2]})
    relevance = se.Relevance.from_frame(gains, gain="gain")
    return se.evaluate(rankings, relevance, metrics, memory=LEAST, **options)


def of_matrices(case, metrics, options, **more):
    return se.evaluate(case.positions, case.validation, metrics, **options, **more)


def of_parquet(case, metrics, options, change=shuffled):
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{side}.parquet" for side in ("lists", "held")]
        for frame, path in zip(case.tables, paths, strict=True):
            change(frame).to_parquet(path, index=False, row_group_size=2)
        evaluation = se.evaluate(*paths, metrics, **options)
        evaluation.summary()  # with the random baseline, of a second pass
    return evaluation


def by_folders(case, metrics, options):
    with tempfile.TemporaryDirectory() as folder:
        lists = saved_csr(Path(folder) / "lists", case.positions)
        held = saved_csr(Path(folder) / "held", case.validation)
        evaluation = se.evaluate(lists, str(held), metrics, memory=LEAST, **options)
        evaluation.summary()
    return evaluation


def by_executor(case, metrics, options, way=of_matrices):
    with ThreadPoolExecutor(2) as pool:
        return way(case, metrics, options | {"client": pool})


by_memory = partial(of_matrices, memory=LEAST)
without_users = partial(of_matrices, keep="totals")
by_parquet = partial(of_parquet, change=lambda frame: frame)

WAYS = [
    by_objects,
    by_frames,
    by_labelled_objects,
    by_memory,
    without_users,
    partial(of_matrices, memory=LEAST, keep="totals"),
    by_folders,
    by_parquet,
    of_parquet,
    by_executor,
    partial(by_executor, way=of_parquet),
]
