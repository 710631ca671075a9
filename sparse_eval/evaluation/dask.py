"""Dask: users, checkpoints and tables fanned out to the workers of a cluster.

Wherever a client is asked for, any `concurrent.futures.Executor` does too. Each task uses one
thread, so that as many run beside each other as the workers have. Kernels are compiled once on each
machine and kept in numba's cache. Results are those of one process, to the last bit.
"""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tqdm.auto import tqdm

from ..core.progress import is_shown
from ..errors import InvalidDataError
from ..metrics import convention_named
from ..models.blocks import (
    Saved,
    evaluate_users,
    make_task,
    open_model,
    told_of_seen,
    user_blocks,
    users_of,
)
from ..models.checkpoints import Factors
from ..models.implicit import parse_cut_metrics
from ..models.recommend import as_model
from ..models.sweep import Job, list_checkpoints, prepare, score_file, text_of
from ..results import MergedEvaluation
from ..results.once import Question, terms_of
from ..results.parts import Total
from .arrow import Columns
from .blocks import open_matrix
from .dask_frames import partitions
from .files import PIECE, cut_files
from .parquet import Piece, deal_out, evaluate_heap, evaluate_piece, temporary_folder
from .workers import DaskWorkers, workers_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from ..metrics import Metric
    from ..models.ranking import Via
    from ..results.parts import Part

__all__ = ["evaluate_model", "evaluate_table", "sweep"]

#: Users of a task at most, and tasks that there should be at least: the last one done decides.
ROWS = 1 << 16
LEAST_TASKS = 16


def evaluate_model(
    model: Any,
    train: Any,
    validation: Any,
    metrics: str | Metric | Iterable[str | Metric],
    *,
    client: Any = None,
    convention: str | None = None,
    item_groups: Any = None,
    item_vectors: Any = None,
    no_relevant: Literal["exclude", "zero", "judged"] | None = None,
    via: Via | None = None,
    per_user: bool = True,
    progress: bool | None = None,
) -> MergedEvaluation:
    """Rank and evaluate the users of a model in blocks, on the workers of a cluster.

    Parameters
    ----------
    model, train, validation, metrics
        As in `sparse_eval.evaluate_model`, of models with factors. What is given by its path is
        opened by each worker, and not sent: the path has to lead to the same files everywhere.
        With everything on disk users cost their evaluation alone; sending them may take as long.
    client : distributed.Client, str or concurrent.futures.Executor, optional
        Who does the work; text is the address of a scheduler. By default the current client.
    convention, item_groups, item_vectors, no_relevant, via, per_user, progress
        As in `sparse_eval.evaluate_model`.

    Returns
    -------
    MergedEvaluation
        The same, to the last bit, as from `sparse_eval.evaluate_model` in blocks.

    Raises
    ------
    WorkerError
        If nobody answers at the address, there are no workers, they have another version of this
        package, or a block of users killed one after the other.
    MissingExtraError
        If distributed is not installed and `client` is no executor.
    SparseEvalError
        What `sparse_eval.evaluate_model` raises.

    Examples
    --------
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> import sparse_eval as se
    >>> from sparse_eval.evaluation.dask import evaluate_model
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> holdout = se.split.random(clicks, seed=0)
    >>> data = holdout.train, holdout.validation
    >>> model = se.train_als(holdout.train, factors=8)
    >>> with ThreadPoolExecutor(2) as pool:
    ...     found = evaluate_model(model, *data, "ndcg@10", client=pool)
    >>> found["ndcg@10"] == se.evaluate_model(model, *data, "ndcg@10")["ndcg@10"]
    True
    """
    asked = parse_cut_metrics(metrics, convention_named(convention))
    inputs = {"item_groups": item_groups, "item_vectors": item_vectors}
    given = {"train", *(name for name, value in inputs.items() if value is not None)}
    question = Question.of(asked, convention, no_relevant, given)
    sides = {"factors": model, "train": train, "validation": validation}
    saved: dict[str, Any] = {
        name: Saved.of(side) for name, side in sides.items() if isinstance(side, str | Path)
    }
    train, validation = (
        open_matrix(side) if isinstance(side, str | Path) else side for side in (train, validation)
    )
    model = open_model(model)
    if not isinstance(model, Factors):  # whose rows are checked block by block
        model = as_model(model)
    users = users_of(model, train, validation)
    task = make_task(question, model, users, inputs, via, per_user, saved.get("factors"))
    n_rows = max(min(ROWS, -(-(users.n_users or ROWS) // LEAST_TASKS)), 1)
    sent = users._replace(**saved)
    total = Total()
    with (
        workers_of(client) as workers,
        tqdm(
            total=users.n_users, desc="evaluate", unit=" users", disable=not is_shown(progress)
        ) as bar,
    ):
        for _, part in workers.run(evaluate_users, task, user_blocks(sent, n_rows)):
            total.add(part)
            bar.update(part.span.n)
    terms = terms_of(question)
    found = MergedEvaluation([total.whole()], terms.plans, terms.rules)
    if found.retrieval is not None and found.retrieval.n_seen:
        warnings.warn(told_of_seen(found.retrieval.n_seen), stacklevel=2)
    return found


def sweep(
    paths: str | Path | Iterable[str | Path],
    train: Any,
    validation: Any,
    metrics: str | Metric | Iterable[str | Metric],
    *,
    client: Any = None,
    out: str | Path | None = None,
    convention: str | None = None,
    monitor: str | Metric | None = None,
    progress: bool | None = None,
) -> pd.DataFrame:
    """Evaluate many checkpoints on the same data, each on one of the workers of a cluster.

    Parameters
    ----------
    paths : str, Path or iterable of them
        As in `sparse_eval.sweep`; they have to lead to the same files everywhere.
    train, validation, metrics, out, convention, monitor, progress
        As in `sparse_eval.sweep`. Only this process writes `out`.
    client : distributed.Client, str or concurrent.futures.Executor, optional
        As in `evaluate_model`.

    Returns
    -------
    pandas.DataFrame
        As from `sparse_eval.sweep`.

    Raises
    ------
    WorkerError, MissingExtraError
        As from `evaluate_model`.
    SparseEvalError
        What `sparse_eval.sweep` raises.
    """
    files = list_checkpoints(paths)
    job, table = prepare(files, train, validation, metrics, out, convention, monitor, 1)
    with (
        workers_of(client) as workers,
        tqdm(
            total=len(files), desc="score", unit=" checkpoints", disable=not is_shown(progress)
        ) as bar,
    ):
        tasks = ((path, path.absolute()) for path in files)
        for (path, _), row in workers.run(_score, (job, table.scored), tasks):
            bar.set_postfix_str(path.name)
            table.add(row, files)
            bar.update()
    table.save(files)
    return table.frame(files)


def _score(shared: tuple[Job, dict[str, Any]], task: tuple[Path, Path]) -> dict[str, str]:
    job, scored = shared
    path, absolute = task
    return score_file(absolute, job, scored) | {"file": text_of(path)}


def evaluate_table(
    recs: Any,
    truth: Any,
    metrics: str | Metric | Iterable[str | Metric],
    *,
    client: Any = None,
    user: str = "user",
    item: str = "item",
    rank: str | None = None,
    score: str | None = None,
    gain: str | None = None,
    convention: str | None = None,
    no_relevant: Literal["exclude", "zero", "judged"] | None = None,
    per_user: bool = False,
    progress: bool | None = None,
) -> MergedEvaluation:
    """Evaluate recommendations in a table against a table of what is relevant.

    Parameters
    ----------
    recs, truth : dask.dataframe.DataFrame, str or Path
        One row for each recommended item, and for each relevant one; or the paths of Parquet files
        or folders, which have to lead to the same files everywhere. Rows may be in any order, and
        those of a user in any partition: unless partitions hold different users, which is looked
        for, rows are shuffled.
    metrics : str, Metric or iterable of them
        Those that need neither training data nor groups or vectors of items.
    client : distributed.Client, str or concurrent.futures.Executor, optional
        As in `evaluate_model`; for dataframes one of Dask's.
    user, item : str
        Columns with the ids, whole numbers or text, in both tables.
    rank, score : str, optional
        The column of `recs` with 1-based ranks, or with scores, higher is better, of which equal
        ones are ordered by item. By default the one of "rank" and "score" that there is.
    gain : str, optional
        The column of `truth` with gains; by default "gain" where there is one, and otherwise every
        row counts 1.
    convention, no_relevant, per_user, progress
        As in `sparse_eval.evaluate`; values of users are not kept by default.

    Returns
    -------
    MergedEvaluation
        The same, to the last bit, as `sparse_eval.evaluate` makes of Parquet.

    Raises
    ------
    WorkerError, MissingExtraError
        As from `evaluate_model`.
    InvalidDataError
        If a column is missing or of another type in the other table, or a row cannot be used: user
        and item are named.
    InvalidFileError
        If a file cannot be read.
    """
    question = Question.of(metrics, convention, no_relevant)
    columns = Columns(user, item, rank, score, gain)
    paths = [isinstance(side, str | Path) for side in (recs, truth)]
    if any(paths) and not all(paths):
        raise InvalidDataError("give recs and truth alike: two dataframes, or two paths")
    total = Total()
    with workers_of(client) as workers, ExitStack() as stack:
        pieces: list[Any] | None = None
        if all(paths):
            files = cut_files(question, recs, truth, columns)
            pieces = files.pieces
            if pieces is None and not isinstance(workers, DaskWorkers):
                folder = stack.enter_context(temporary_folder())
                pieces = list(deal_out(files.tables, files.columns, PIECE, Path(folder)))
        if pieces is None:
            parts, n = partitions(question, recs, truth, columns, workers, per_user)
        else:
            shared = question, files.columns, files.schemas, files.known, per_user
            n = len(pieces)
            parts = (part for _, part in workers.run(_evaluate_piece, shared, pieces))
        for part in tqdm(
            parts, total=n, desc="evaluate", unit=" parts", disable=not is_shown(progress)
        ):
            total.add(part)
    terms = terms_of(question)
    return MergedEvaluation([total.whole()], terms.plans, terms.rules)


def _evaluate_piece(shared: tuple[Any, ...], piece: Any) -> Part:
    question, columns, schemas, known, per_user = shared
    if isinstance(piece, Piece):
        return evaluate_piece(question, columns, schemas, piece, known, per_user, 1)
    return evaluate_heap(question, columns, piece, known, per_user, 1)
