"""The ways from lists and relevance to an evaluation, which all give one number."""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from tables_cases import saved_csr

import sparse_eval as se
from sparse_eval.evaluation import run

LEAST = run.MINIMUM


@contextmanager
def small_blocks():
    """Let blocks be of two users, or of so few rows."""
    with (
        mock.patch.object(run, "PER_USER", LEAST // 3),
        mock.patch.object(run, "check_values_fit", return_value=0),
        mock.patch("sparse_eval.evaluation.parquet.ROWS_AT_ONCE", 4),
        mock.patch("sparse_eval.evaluation.parquet.ROWS_PER_TASK", 4),
        # So that files of a few rows are enough for all rows of a case.
        mock.patch("sparse_eval.evaluation.parquet.MAX_FILES", 5_000),
    ):
        yield


def by_objects(case, metrics, options):
    rankings = se.Rankings.from_positions(case.positions)
    return se.evaluate(rankings, se.Relevance.from_csr(case.validation), metrics, **options)


def by_frames(case, metrics, options):
    shuffled = (frame.sample(frac=1, random_state=0) for frame in case.tables)
    return se.evaluate(*shuffled, metrics, **options)


def by_labelled_objects(case, metrics, options):
    lists, gains = case.tables
    rankings = se.Rankings.from_frame(lists, **{lists.columns[2]: lists.columns[2]})
    relevance = se.Relevance.from_frame(gains, gain="gain")
    return se.evaluate(rankings, relevance, metrics, memory=LEAST, **options)


def by_memory(case, metrics, options):
    return se.evaluate(case.positions, case.validation, metrics, memory=LEAST, **options)


def without_users(case, metrics, options):
    return se.evaluate(case.positions, case.validation, metrics, keep="totals", **options)


def without_users_in_blocks(case, metrics, options):
    options = options | {"keep": "totals", "memory": LEAST}
    return se.evaluate(case.positions, case.validation, metrics, **options)


def by_folders(case, metrics, options):
    with tempfile.TemporaryDirectory() as folder:
        lists = saved_csr(Path(folder) / "lists", case.positions)
        held = saved_csr(Path(folder) / "held", case.validation)
        evaluation = se.evaluate(lists, str(held), metrics, memory=LEAST, **options)
        evaluation.summary()
    return evaluation


@contextmanager
def parquet(case, *, shuffled):
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for number, frame in enumerate(case.tables):
            path = Path(folder) / f"{number}.parquet"
            if shuffled:
                frame = frame.sample(frac=1, random_state=0)
            frame.to_parquet(path, index=False, row_group_size=2)
            paths.append(path)
        yield paths


def of_parquet(case, metrics, options, *, shuffled=True):
    with parquet(case, shuffled=shuffled) as paths:
        evaluation = se.evaluate(*paths, metrics, **options)
        evaluation.summary()  # with the random baseline, of a second pass
    return evaluation


def by_parquet(case, metrics, options):
    return of_parquet(case, metrics, options, shuffled=False)


def by_shuffled_parquet(case, metrics, options):
    return of_parquet(case, metrics, options)


def by_executor(case, metrics, options):
    with ThreadPoolExecutor(2) as pool:
        return se.evaluate(case.positions, case.validation, metrics, client=pool, **options)


def by_parquet_and_executor(case, metrics, options):
    with ThreadPoolExecutor(2) as pool:
        return of_parquet(case, metrics, options | {"client": pool})


WAYS = [
    by_objects,
    by_frames,
    by_labelled_objects,
    by_memory,
    without_users,
    without_users_in_blocks,
    by_folders,
    by_parquet,
    by_shuffled_parquet,
    by_executor,
    by_parquet_and_executor,
]
