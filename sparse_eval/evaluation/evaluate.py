"""`evaluate`: rankings and relevance in, one row of numbers for each user out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..errors import InvalidDataError
from ..inputs.alignment import align
from ..inputs.rankings import Rankings
from ..inputs.relevance import Relevance
from ..inputs.side_data import Context
from ..results import Evaluation, MergedEvaluation, reduce_block
from ..results.once import Question, Terms, evaluate_once, settle_terms
from .blocks import (
    blocks_of_matrices,
    check_memory,
    csr_on_disk,
    evaluate_blocks,
    is_blocks,
    is_matrix_folder,
    largest_gain_of,
    open_matrix,
    paired,
    rows_within,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..metrics import Metric

__all__ = ["evaluate"]


def evaluate(
    predictions: Any,
    validation: Any,
    metrics: str | Metric | Iterable[str | Metric],
    *,
    convention: str | None = None,
    train: Any = None,
    item_groups: Any = None,
    item_vectors: Any = None,
    no_relevant: Literal["exclude", "zero", "judged"] | None = None,
    num_threads: int | None = None,
    per_user: bool = True,
    memory: int | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """Evaluate ranked lists against the items that turned out to be relevant.

    Parameters
    ----------
    predictions : Rankings, or scipy sparse matrix or array, shape (n_users, n_items)
        A matrix holds 1-based positions (`Rankings.from_positions`). Or an iterable of these,
        blocks of users one after the other; or a path, see Notes.
    validation : Relevance, or scipy sparse matrix or array, shape (n_users, n_items)
        A matrix holds gains, at least 0 (`Relevance.from_csr`). Where both sides carry labels
        they are matched by label; otherwise row and column numbers are compared, and the smaller
        matrix is padded: an item outside of the other is not relevant but keeps its position.
        With blocks of predictions, blocks of the same users, or all users at once.
    metrics : str, Metric or iterable of them
        For instance ``["ndcg@{5,10}", "map(normalizer=min)@20"]``.
    convention : str, optional
        Count as another library does: "trec_eval", "implicit", "ranx", … It changes the defaults
        of options, the discount, the ideal list, and which users count what: ``sparse-eval
        metrics --convention NAME`` lists it. Options and `no_relevant` that are given are kept.
        Lists are taken as they come: where a library orders equal scores another way, make them
        so, with the ``ties=`` of `Rankings` or `sparse_eval.trec.read_run`.
    train : scipy sparse matrix or array, shape (n_users, n_items), or Relevance, optional
        What the users had seen: every stored entry, an explicit zero too, is no candidate for
        recommendation; entries other than zero count for popularity, co-occurrence and history.
        Numbered as `validation`, or labelled like it (`Relevance.from_frame`). Some metrics need
        it. The catalogue is as large as the largest of all inputs.
    item_groups : sequence, mapping, Series, or matrix of shape (n_items, n_groups), optional
        The group of each item, or its weights in several.
    item_vectors : array_like of shape (n_items, width), or DataFrame by item, optional
        A vector for each item.
    no_relevant : {"exclude", "zero", "judged"}, optional
        A user without relevant items is left out of every mean (NaN for that user; the default),
        or counts 0, or counts 0 only if the validation data hold zeros for it. A user with
        relevant items and no list counts 0, unless the convention leaves it out.
    num_threads : int, optional
        Threads to use, one for each core by default. The result does not depend on it.
    per_user : bool
        Whether to keep the values of each user. Without them what is kept does not grow with the
        number of users.
    memory : int, optional
        Bytes that the evaluation may take, beside its inputs and the interpreter; at least 16 MiB.
        Users are then evaluated in blocks of as many as fit; blocks of an iterable stay as given.
    progress : bool, optional
        Show a progress bar where there are blocks; by default on a terminal only.

    Returns
    -------
    Evaluation
        A `MergedEvaluation`, which has no lists, of users in blocks and with ``per_user=False``.
        Its numbers have the same bits, however users are cut into blocks.

    Raises
    ------
    InvalidMetricError
        If a metric, option or convention is unknown, none is asked for, one needs an input that
        is not given, or one is not defined for lists with ``ties="average"``.
    InvalidDataError
        If a matrix is refused by `Rankings.from_positions` or `Relevance.from_csr`, groups or
        vectors do not cover the items, no user has a relevant item, gains are too large for a sum
        of them to be finite, or a metric of what is recommended meets a list with unknown items;
        or if blocks are of different users, or the values of the users do not fit into `memory`.
    InvalidFileError
        If a file cannot be read.

    Notes
    -----
    A path is a folder with a CSR matrix in four files, ``data.npy``, ``indices.npy``,
    ``indptr.npy`` and ``shape.npy``, which stay on disk; or a Parquet file, or a folder of them,
    with a row for each recommended item: columns ``user``, ``item`` and ``rank`` (or ``score``),
    and for validation ``user``, ``item`` and, optionally, ``gain``. Parquet is read a range of
    users after the other, whatever the order of its rows, and takes the extra ``parquet``.

    Examples
    --------
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> rankings = se.Rankings.from_topk([[0, 3, 2], [1, 0, 2]])
    >>> relevant = csr_matrix([[1, 0, 1, 0], [0, 0, 0, 0]])
    >>> ev = se.evaluate(rankings, relevant, ["ndcg@3", "recall@1"])
    >>> round(ev["ndcg@3"], 6)
    0.919721
    >>> ev
    <Evaluation: 1 users, 1 left out; ndcg@3 0.9197, recall@1 0.5000>
    >>> se.evaluate(rankings, relevant, "ndcg@3", convention="rectools")["ndcg@3"]
    0.7039180890341347
    """
    inputs = {"train": train, "item_groups": item_groups, "item_vectors": item_vectors}
    given = [name for name, value in inputs.items() if value is not None]
    if isinstance(predictions, str | Path) and not is_matrix_folder(predictions):
        question = Question.of(metrics, convention, no_relevant, given)
        return _tables(question, predictions, validation, memory, per_user, num_threads, progress)
    terms = settle_terms(metrics, convention, no_relevant, given)
    memory = check_memory(memory)
    options: dict[str, Any] = {"num_threads": num_threads, "progress": progress}
    if is_blocks(predictions) or is_blocks(validation):
        return _in_blocks(terms, predictions, validation, inputs, per_user, options)
    predictions, validation = (
        open_matrix(side) if isinstance(side, str | Path) else side
        for side in (predictions, validation)
    )
    if memory is not None:
        return _within(memory, terms, predictions, validation, inputs, per_user, options)
    rankings = (
        predictions if isinstance(predictions, Rankings) else Rankings.from_positions(predictions)
    )
    relevance = validation if isinstance(validation, Relevance) else Relevance.from_csr(validation)
    rankings, relevance = align(rankings, relevance)
    context = Context.between(rankings, relevance, **inputs)
    found = evaluate_once(terms, rankings, relevance, context, num_threads)
    return found if per_user else reduce_block(found, per_user=False)


def _tables(
    question: Question,
    predictions: str | Path,
    validation: Any,
    memory: int | None,
    per_user: bool,
    num_threads: int | None,
    progress: bool | None,
) -> MergedEvaluation:
    """Evaluate Parquet files."""
    from .arrow import Columns
    from .parquet import evaluate_parquet

    if not isinstance(validation, str | Path):
        raise InvalidDataError(
            f"predictions are the table {predictions}, and validation is a "
            f"{type(validation).__name__}; give the path of a table too"
        )
    if question.given:
        raise InvalidDataError(
            f"{', '.join(sorted(question.given))} cannot be given beside tables, whose users and "
            "items have other numbers; evaluate matrices"
        )
    columns = Columns("user", "item", None, None, None)
    return evaluate_parquet(
        question,
        predictions,
        validation,
        columns,
        memory=check_memory(memory),
        per_user=per_user,
        num_threads=num_threads,
        progress=progress,
    )


def _in_blocks(
    terms: Terms,
    predictions: Any,
    validation: Any,
    inputs: dict[str, Any],
    per_user: bool,
    options: dict[str, Any],
) -> MergedEvaluation:
    """Evaluate an iterable of blocks."""
    if not is_blocks(predictions):
        raise InvalidDataError(
            f"validation is an iterable of blocks, and predictions a {type(predictions).__name__}; "
            "give blocks of both"
        )
    if is_blocks(validation):
        blocks = paired(predictions, validation)
        return evaluate_blocks(terms, blocks, inputs, per_user=per_user, **options)
    if isinstance(validation, str | Path):
        validation = open_matrix(validation)
    relevance = validation if isinstance(validation, Relevance) else Relevance.from_csr(validation)
    context = Context.of(relevance.shape, relevance.users, relevance.items_index, **inputs)
    context = replace(context, largest_gain=largest_gain_of(terms.plans, relevance))
    blocks = paired(predictions, relevance)
    return evaluate_blocks(
        terms, blocks, inputs, context, n_users=relevance.shape[0], per_user=per_user, **options
    )


def _within(
    memory: int,
    terms: Terms,
    predictions: Any,
    validation: Any,
    inputs: dict[str, Any],
    per_user: bool,
    options: dict[str, Any],
) -> MergedEvaluation:
    """Evaluate matrices in blocks that need no more than `memory` bytes."""
    if isinstance(predictions, Rankings) and isinstance(validation, Relevance):
        predictions, validation = align(predictions, validation)
    sides: list[Any] = [
        side if isinstance(side, Rankings | Relevance) else csr_on_disk(side, name)
        for side, name in (
            (predictions, "the position matrix"),
            (validation, "the validation matrix"),
        )
    ]
    labels = next((side.users for side in sides if getattr(side, "users", None) is not None), None)
    items = next(
        (side.items_index for side in sides if getattr(side, "items_index", None) is not None), None
    )
    shape = (max(side.shape[0] for side in sides), max(side.shape[1] for side in sides))
    context = Context.of(shape, labels, items, **inputs)
    n_entries = sum(int(side.indptr[-1]) for side in sides)
    n_rows = rows_within(memory, n_entries, shape[0], len(terms.plans), per_user)
    context = replace(context, largest_gain=largest_gain_of(terms.plans, sides[1], n_rows))
    blocks = blocks_of_matrices(sides[0], sides[1], shape[0], n_rows)
    return evaluate_blocks(
        terms, blocks, inputs, context, n_users=shape[0], per_user=per_user, **options
    )
