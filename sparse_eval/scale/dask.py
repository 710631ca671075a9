"""Dask: users, checkpoints and tables fanned out to the workers of a cluster.

Wherever a client is asked for, any `concurrent.futures.Executor` does too. Each task uses one
thread, so that as many run beside each other as the workers have. Kernels are compiled once on each
machine and kept in numba's cache. Results are those of one process, to the last bit.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from tqdm.auto import tqdm

from ..blocks import open_matrix
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
from ..models.factors import Factors
from ..models.implicit import parse_cut_metrics
from ..models.recommend import as_model
from ..once import Question, terms_of
from ..parts import Total
from ..progress import is_shown
from ..results import MergedEvaluation
from .workers import workers_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..metrics import Metric
    from ..models.retrieval import Via

__all__ = ["evaluate_model"]

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
        As in `sparse_eval.evaluate_model`. What is given by its path is opened by each worker, and
        not sent: the path has to lead to the same files everywhere. With everything on disk users
        cost their evaluation alone; in memory, of 64 factors, sending them takes as long.
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
    >>> from sparse_eval.scale.dask import evaluate_model
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
