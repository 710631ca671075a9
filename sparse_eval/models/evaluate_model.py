"""`evaluate_model`: rank the unseen items of a model's users, and evaluate the rankings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from ..core.arguments import check_choice, show_spelling
from ..datasets.split.parts import split_arguments
from ..errors import InvalidDataError, InvalidMetricError, UnsupportedModelError
from ..evaluation.evaluate import check_keep
from ..evaluation.execution import Execution, evaluate_source
from ..evaluation.mistakes import warn_of_mistakes
from ..inputs.axes import Axis
from ..inputs.candidates import Candidates, as_candidates
from ..inputs.item_data import item_inputs
from ..inputs.labelled import LabelledMatrix
from ..inputs.requests import Requests
from ..metrics.request import Request
from ..results import Evaluation
from ..results.weighted import evaluation_of_users
from .model import Factors
from .model_source import open_source, rank_by_popularity
from .opening import as_model

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from numpy.typing import ArrayLike

    from ..datasets.split.holdout import Holdout
    from ..datasets.split.parts import CandidatesLike, TrainLike
    from ..evaluation.execution import Keep
    from ..evaluation.runners import ClientLike
    from ..inputs.item_data import ItemData
    from ..metrics.request import MetricsLike
    from .opening import ModelLike


@show_spelling
def evaluate_model(
    model: ModelLike,
    train: Holdout | TrainLike | None,
    validation: TrainLike | Requests | MetricsLike | None = None,
    metrics: MetricsLike | None = None,
    *,
    users: Iterable[Hashable] | ArrayLike | None = None,
    candidates: CandidatesLike | None = None,
    item_data: ItemData | None = None,
    average: Literal["request", "user"] = "request",
    weights: Any = None,
    convention: str | None = None,
    baselines: bool = False,
    keep: Keep = "values",
    memory: int | str | None = None,
    client: ClientLike | None = None,
    num_threads: int | None = None,
    progress: bool | None = None,
) -> Evaluation:
    """Rank the unseen items of every user with relevant ones, and evaluate the rankings.

    Parameters
    ----------
    model : fitted model of implicit, path, pair of factors, matrix, function, or Scorer
        ALS, BPR, LMF or an item-item neighbour model, on the CPU or with ``to_cpu``; or the path
        of a checkpoint that one of them saved. Or only factors: a pair (users, items) of arrays or
        of ``.npy`` files, or a folder with ``user_factors.npy`` and ``item_factors.npy``; files
        stay on disk. `factor_model` adds biases to factors, and makes cosines and distances of
        them.

        Or scores of users × items: an array, a tensor, a ``.npy`` file, or a function of users that
        returns their scores of all items. The file stays on disk. Or a square matrix of items ×
        items (EASE, SLIM, item neighbours), sparse or dense, or the path of one in ``.npy`` or
        SciPy's ``.npz``. Its scores are the product of `train` with it, accumulated in float64 in
        the order of the user's items. If there are as many users as items, a matrix could be either
        and raises an error: give ``Scorer(matrix)`` or ``Scorer(item_item=matrix)``. Or one of
        `sparse_eval.baselines`. Scores are computed for blocks of users within bounded memory.
    train : sparse matrix, Interactions, frame, Relevance, path or Holdout
        What users have seen: every stored entry, also an explicit zero, is not recommended again. A
        matrix without ids has the rows and columns of the matrix that the model was trained on.
        Data with ids are matched with the ids of the model (see Notes). For paths see `evaluate`.
        ``evaluate_model(model, holdout, metrics)`` uses both parts of a `Holdout`, or of a folder
        that `Holdout.save` wrote. The users of a split by users are folded in, as by `fold_in`.
        None with `Requests`, whose users may be recommended what they have seen.
    validation : as `train`, or Requests
        The held-out gains. Of `Requests`, each has a ranking of its own, by the factors of its
        user, among the items shown or all items. Without ids: of all items of `train` or the first
        ones, and of all its users or the first ones.
    metrics : str, Metric, iterable of them, or Protocol
        Metrics without a cut-off (auc, mean_rank, percentile_rank, mrr, ndcg, …) use the exact
        ranks of the relevant items among all unseen ones. All models except neighbour models of
        implicit have these ranks. Metrics of the recommended items need a cut-off, and cannot be
        combined with these.
    users : sequence of hashable, optional
        The ids of the users to evaluate, or their rows in `train` if there are no ids; by default
        all of `validation`. The values of each user are the same as in the evaluation of all users:
        items and the largest gain come from the whole `validation`. The results are in the order of
        the model's users.
    candidates : Candidates, sparse matrix, Interactions, frame, path, mapping or array, optional
        The items that each user can be recommended; items in `train` are excluded. Either an entry
        for each user and candidate (a matrix with the rows and columns of `train`, or with ids,
        which are matched), or a mapping of user ids to items. Or one flat array of item rows, or a
        pandas.Index of item ids, for all users. Or the result of `sample_negatives`. Not for
        neighbour models of implicit. Models of factors score no other pairs. Relevant items that
        are not candidates count as missed.
    item_data, average, weights, convention
        As in `evaluate`; groups and vectors without ids are in the order of the model's items.
    baselines : bool
        Also evaluate the popularity ranking: the items of most training users that the user has not
        seen (``ev.baselines["popularity"]``, and a column of ``summary()``).
    keep : {"values", "lists", "totals"}
        As in `evaluate`. "lists" ranks whole lists up to the largest cut-off, for `rbo`, `explain`
        and charts of lists, even if the metrics need only the ranks of relevant items. It needs
        metrics with a cut-off.
    memory, client
        As in `evaluate`; `memory` and `client` are for all but neighbour models of implicit.
        `memory` does not include the model, and must be at least what ranking takes for any number
        of users (about 160 MB, more with many items). With `client`, each worker opens the paths,
        which must lead to the same files everywhere; a function is pickled for other processes.
    num_threads : int, optional
        By default one for each core that this process may use, as in `evaluate`. The result does
        not depend on it.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    Evaluation
        As from `evaluate`. Rankings are as long as the largest cut-off, or shorter if there are
        fewer unseen items. They contain all unseen items if a metric has no cut-off.
        ``ev.retrieval`` records how the rankings were made and how many hits are tied. It also
        counts relevant items that no list can contain because they were seen in training, and users
        and items without factors. Users without relevant items get a list only if it counts: by
        ``no_relevant="zero"``, ``"judged"`` if zeros are stored for them, or a convention whose
        metrics of recommended items count every list. If no user counts, the evaluation has no
        numbers, but merges with evaluations of other users.

    Raises
    ------
    UnsupportedModelError
        If the model cannot recommend, was not fitted, or is a neighbour model of implicit with
        `memory` or `client`. If users cannot be folded into it.
    InvalidCheckpointError
        If the checkpoint cannot be read, or has no finite factors.
    InvalidDataError
        If `train` does not have the model's users and items, or `validation` is larger than
        `train`. If a score is not finite (the error names user and item), or a square matrix could
        be scores or item-item weights. If one of `users` is unknown.
    InvalidMetricError
        If a metric is unknown, or needs other rankings than another metric.
    WorkerError, MissingExtraError
        As from `evaluate`.

    Warns
    -----
    UserWarning
        If users have seen held-out items (no list can contain them), users have no training data,
        or users or items are unknown to the model. If nothing was hit at all. If the data have ids
        and the model, which is not a function, has none. If `train_als`, `train_model` or
        `EvaluationCallback.fit` trained the model on pairs that differ from `train` and may include
        held-out pairs. This is not checked if its last event precedes the cut of a split by time,
        or if it was trained on a part of ``holdout.for_test().train``.

    See Also
    --------
    evaluate : Evaluate given rankings.
    sweep : Evaluate many checkpoints.
    factor_model : A model of factors with biases, cosines or distances.
    save_model : Save a model with the ids of its users and items.

    Notes
    -----
    Rankings are made in the cheapest exact way that the metrics allow. They need the ranks of the
    relevant items up to the largest cut-off, all of their ranks, or lists. Of equal scores the
    lower column of the model comes first. Neighbour models of implicit, and a model in a
    `Recommender`, make their own lists. Scores and the order of equal ones are the model's
    (implicit puts the higher column first).

    A model has the ids of its users and items if `train_als` or `EvaluationCallback.fit` trained it
    on labelled data, or if `save_model` or the command line saved it. Any other model, also one
    that implicit's own ``fit`` trained further, is numbered as `train` is, with a warning if
    `train` has ids. Users and items are matched by id, so
    yesterday's model can be evaluated on today's data. Users unknown to it get no list and count 0,
    and items unknown to it are missed. A warning counts both (``ev.retrieval.n_unknown_users``,
    ``n_unknown_items``). A model without ids and data whose ids were numbered on the way (a frame,
    a table) do not fit together, and raise an error.

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> holdout = se.split.random(clicks, seed=0)
    >>> model = se.train_als(holdout.train, factors=8)
    >>> ev = se.evaluate_model(model, holdout.train, holdout.validation, ["ndcg@10"])
    >>> 0 < ev["ndcg@10"] < 1
    True
    >>> ev.retrieval.via
    'held_out_ranks'
    >>> whole = se.evaluate_model(model, holdout, ["auc", "percentile_rank", "ndcg@10"])
    >>> whole.retrieval.via
    'full_ranks'
    >>> whole["ndcg@10"] == ev["ndcg@10"]
    True

    Workers can share the users, here the workers of an executor:

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as pool:
    ...     shared = se.evaluate_model(
    ...         model, holdout.train, holdout.validation, "ndcg@10", client=pool
    ...     )
    >>> shared["ndcg@10"] == ev["ndcg@10"]
    True
    """
    check_choice("average", average, ["request", "user"])
    if isinstance(validation, Requests) or weights is not None:
        given: dict[str, Any] = {
            "users": users, "candidates": candidates, "item_data": item_data, "keep": keep,
            "convention": convention, "memory": memory, "client": client,
            "num_threads": num_threads, "progress": progress,
        }  # fmt: skip
        if baselines:
            raise InvalidDataError(
                "baselines are of users with one list each; evaluate se.baselines.popularity too",
                argument="baselines",
            )
        check_keep(keep)
        requests = validation if isinstance(validation, Requests) else None
        if requests is not None:
            rows = _of_requests(model, train, requests, metrics, given)
        else:
            rows = evaluate_model(model, train, validation, metrics, **given)
        return evaluation_of_users(rows, requests, weights, by_user=average == "user")
    train, validation, metrics = split_arguments(train, validation, metrics)
    inputs = {} if item_data is None else item_inputs(item_data)
    if candidates is not None:
        inputs["candidates"] = candidates
    # Refuse the request before ranking, not after.
    request = Request.parse_ranked(metrics, {"train", *inputs}, convention)
    execution = Execution(keep, memory, client, num_threads, progress)
    if keep == "lists" and request.of_whole_rankings:
        raise InvalidMetricError(
            f"{request.of_whole_rankings[0]} has no cut-off, so it uses ranks in the whole "
            "catalogue and not lists. Omit keep='lists', or use metrics with a cut-off"
        )
    return evaluate_request(request, model, train, validation, inputs, execution, users, baselines)


def _of_requests(
    model: ModelLike, train: Any, requests: Requests, metrics: Any, given: dict[str, Any]
) -> Evaluation:
    """Evaluate the ranking of each request, by the factors of its user."""
    for name, value in {"train": train, "users": given["users"]}.items():
        if value is not None:
            raise InvalidDataError(
                f"{name} is for users with one list each; pass {name}=None with Requests",
                argument=name,
            )
    if metrics is None:
        raise InvalidMetricError("no metrics are given; expected None, requests and metrics")
    opened = as_model(model)
    factors = opened.factors
    if factors is None or not opened.exact:
        raise UnsupportedModelError(
            f"requests are ranked by the factors of users, which a {opened.name} does not have; "
            "pass its lists to se.evaluate"
        )
    known, ids = Axis.numbers(len(factors.user_factors)), factors.item_ids
    relevance = requests.relevance
    if factors.user_ids is not None and ids is not None:
        known = Axis.of(factors.user_ids, "user_ids")
    elif not requests.users.is_integer or relevance.items_index is not None:
        raise InvalidDataError(
            "the model has no ids of users, and the requests have; save it with se.save_model(model"
            ", path, users=…, items=…), or train it on data with ids"
        )
    places = known.locate(requests.users.tolist())[requests.user_codes]
    names = relevance.users
    names = Axis.of(np.arange(len(requests))) if names is None else names
    columns = relevance.items_index
    columns = Axis.of(np.arange(relevance.shape[1])) if columns is None else columns
    is_known = places >= 0
    items = Axis.of(np.arange(len(factors.item_factors)) if ids is None else ids, "item_ids")
    view = Factors(
        factors.user_factors[places[is_known]], factors.item_factors, names[is_known], items
    )
    nothing = sparse.csr_matrix((len(names), len(items)))
    seen = LabelledMatrix.of(nothing, names, items)
    side = {} if given["item_data"] is None else item_inputs(given["item_data"])
    among = requests.candidates if given["candidates"] is None else given["candidates"]
    if among is not None:
        side["candidates"] = _labelled(as_candidates(among), names, columns)
    parsed = Request.parse_ranked(metrics, side.keys() - {"train"}, given["convention"])
    execution = Execution(*(given[name] for name in (
        "keep", "memory", "client", "num_threads", "progress",
    )))  # fmt: skip
    relevance = replace(relevance, users=names, items_index=columns)
    source = open_source(parsed, execution, view, seen, relevance, side)
    rows = evaluate_source(parsed, execution, source)
    part = replace(rows._part.computed(), seen=None)
    warn_of_mistakes(part)
    return Evaluation(part)


def _labelled(candidates: Candidates, names: Axis, columns: Axis) -> Candidates:
    """Return candidates with the labels of requests and items, unless they have their own."""
    if candidates.users is None and not candidates.for_all:
        if candidates.shape[0] != len(names):
            raise InvalidDataError(
                f"candidates have {candidates.shape[0]} rows for {len(names)} requests; give one "
                "for each, or ids of requests",
                argument="candidates",
            )
        candidates = replace(candidates, users=names)
    if candidates.items_index is None and candidates.shape[1] <= len(columns):
        candidates = replace(candidates, items_index=columns[: candidates.shape[1]])
    return candidates


def evaluate_request(
    request: Request,
    model: ModelLike,
    train: Any,
    validation: Any,
    inputs: dict[str, Any],
    execution: Execution,
    users: Iterable[Hashable] | ArrayLike | None = None,
    baselines: bool = False,
    *,
    warns: bool = True,
) -> Evaluation:
    """Evaluate a parsed request; `warns` is as in `open_source`."""
    if "candidates" in inputs:
        inputs = inputs | {"candidates": as_candidates(inputs["candidates"])}
    source = open_source(request, execution, model, train, validation, inputs, users, warns=warns)
    popular = rank_by_popularity(source) if baselines else None
    evaluation = evaluate_source(request, execution, source)
    if popular is not None:
        evaluation.baselines["popularity"] = evaluate_source(request, execution, popular)
    warn_of_mistakes(evaluation._part)
    return evaluation
