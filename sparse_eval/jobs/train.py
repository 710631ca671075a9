"""Train models of `implicit`, evaluate them meanwhile, and stop when they no longer improve."""

from __future__ import annotations

import math
import warnings
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from ..core.arguments import check_choice, check_flag, check_number, check_whole, show_spelling
from ..core.atomic_files import make_folder
from ..core.formatting import as_html, number, plain
from ..core.hashing import digest_file
from ..core.messages import warn
from ..core.progress import progress_bar
from ..core.threads import one_blas_thread, thread_count
from ..datasets.split.parts import digest_of, open_train, split_arguments
from ..errors import (
    InvalidDataError,
    InvalidFileError,
    InvalidMetricError,
    SparseEvalError,
    UnsupportedModelError,
)
from ..evaluation.execution import Execution
from ..inputs.alignment import check_size
from ..inputs.labelled import LabelledMatrix, labels_of
from ..models.checkpoints import check_similarity, read_checkpoint, save_model
from ..models.ids import ids_of, keep_ids
from ..models.model import ImplicitFactors
from ..models.opening import as_model, without_zeros
from ..models.trained_on import keep_training
from ..retrieval.ranker import check_factors
from .ledger import INPUTS, Ledger
from .scoring import Scoring, best_of, parse_monitored

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd
    from implicit.cpu.als import AlternatingLeastSquares

    from ..core.types import AnyArray, CSRMatrix, PathLike, SparseInput
    from ..datasets.split.holdout import Holdout
    from ..datasets.split.parts import CandidatesLike, TrainLike
    from ..metrics import Metric
    from ..metrics.request import MetricsLike
    from ..models.model import Model as AnyModel
    from ..models.opening import ModelLike
    from .ledger import Row

#: A model of `implicit`, which has no type annotations.
Model = TypeVar("Model", bound=Any)

#: The parameters of `train_als` that can be searched, with their defaults.
PARAMETERS: dict[str, float] = {
    "factors": 64,
    "alpha": 40.0,
    "regularization": 0.1,
    "iterations": 15,
}

#: The parameters that are whole numbers.
WHOLE = frozenset({"factors", "iterations"})


def check_parameter(name: str, value: object) -> float:
    """Return a value of a parameter, or raise `InvalidDataError` that names it."""
    if name in WHOLE:
        return check_whole(name, value, 1, 2**31 - 1)
    return check_number(name, value, 0, open_end=name == "alpha")


#: The checkpoint of a training that keeps its best one only.
BEST = "best.npz"

#: Attributes that implicit derives from the factors on first use, and caches. No public call clears
#: them.
_DERIVED = ("_user_norms", "_item_norms", "_user_norms_host", "_item_norms_host", "_YtY", "_XtX")


@show_spelling
def train_als(
    train: Holdout | TrainLike,
    *,
    factors: int = 64,
    regularization: float = 0.1,
    alpha: float = 40.0,
    iterations: int = 15,
    seed: int = 0,
    progress: bool | None = None,
    callback: EvaluationCallback | None = None,
) -> AlternatingLeastSquares:
    """Train `implicit`'s ALS model.

    Parameters
    ----------
    train : sparse matrix (n_users × n_items), Interactions, frame, Relevance, path or Holdout
        Of a `Holdout` the train part. The stored value is the confidence before `alpha`; an
        explicit zero has no weight at all (shown, not clicked). It is not changed. The model keeps
        its ids of users and items, if any, as attributes ``user_ids`` and ``item_ids``, and
        `save_model` writes them into its file.
    factors : int
        Number of latent factors, at least 1.
    regularization : float
        At least 0.
    alpha : float
        Weight of an interaction, above 0 (40 in [1]_).
    iterations : int
        At least 1.
    seed : int
        Seed of the initial factors. The same seed gives the same factors on the same machine.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.
    callback : EvaluationCallback, optional
        Evaluates while the model is trained, and may stop the training; the progress bar then
        shows the metric it monitors.

    Returns
    -------
    implicit.cpu.als.AlternatingLeastSquares
        Fitted, float32 factors.

    Raises
    ------
    InvalidDataError
        If an option is out of its range, a value of `train` is not finite, or `callback` was made
        for a `train` of another shape.
    SparseEvalError
        If the training diverged. What an evaluation of `callback` raises passes through.

    See Also
    --------
    train_model : Train BPR, LMF and neighbours likewise.
    EvaluationCallback : Evaluate while the model trains, and stop early.
    tune : Search for its hyperparameters.
    save_model : Save it with the ids of its users and items.

    References
    ----------
    .. [1] Hu, Y., Koren, Y. and Volinsky, C. (2008). Collaborative Filtering for Implicit Feedback
       Datasets. ICDM 2008, 263-272. doi:10.1109/ICDM.2008.22

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=50, n_items=40, seed=0).matrix()
    >>> se.train_als(clicks, factors=8, iterations=2).item_factors.shape
    (40, 8)

    With an evaluation after each iteration, and an early stop:

    >>> holdout = se.split.random(clicks, seed=0)
    >>> callback = se.EvaluationCallback(holdout.train, holdout.validation, "ndcg@10", patience=2)
    >>> model = se.train_als(holdout.train, factors=8, iterations=20, callback=callback)
    >>> len(callback.history) <= callback.best_iteration + 2
    True
    """
    from implicit.cpu.als import AlternatingLeastSquares

    for name, value in zip(PARAMETERS, (factors, alpha, regularization, iterations), strict=True):
        check_parameter(name, value)
    check_whole("seed", seed, 0)
    with one_blas_thread():
        model = AlternatingLeastSquares(
            factors=factors,
            regularization=regularization,
            alpha=alpha,
            iterations=iterations,
            random_state=seed,
        )
    return train_model(model, train, progress=progress, callback=callback)


def train_model(
    model: Model,
    train: Holdout | TrainLike,
    *,
    progress: bool | None = None,
    callback: EvaluationCallback | None = None,
) -> Model:
    """Train any model of `implicit`, with the parameters it was made with.

    The model's own ``fit`` takes only a matrix. This function takes data of any kind, keeps their
    ids in the model, and drops entries that the model would misread.

    Parameters
    ----------
    model : model of implicit
        ALS, BPR, LMF, or an item-item neighbour model. A fitted model of factors continues from
        these.
    train : sparse matrix (n_users × n_items), Interactions, frame, Relevance, path or Holdout
        As in `train_als`. Explicit zeros (shown, not clicked) are left out for BPR, which treats
        every stored entry as positive, and for neighbours, which would count them.
    progress, callback
        As in `train_als`; neighbours have no iterations, and take no callback.

    Returns
    -------
    model
        The same model, fitted.

    Raises
    ------
    UnsupportedModelError
        If the model cannot be fitted, or cannot call `callback`.
    InvalidDataError
        If a value of `train` is not finite, neighbours get negative ones, or `callback` was made
        for a `train` of another shape.
    SparseEvalError
        If the training diverged. What an evaluation of `callback` raises passes through.

    Notes
    -----
    With the same ``random_state`` ALS and neighbours come out the same with any number of threads.
    The threads of BPR and LMF race each other: give these ``num_threads=1`` for the same factors
    each time. Otherwise there is one thread for each core that this process may use.

    Examples
    --------
    >>> import sparse_eval as se
    >>> from implicit.cpu.bpr import BayesianPersonalizedRanking
    >>> clicks = se.datasets.synthetic(n_users=50, n_items=40, seed=0)
    >>> bpr = BayesianPersonalizedRanking(8, iterations=5, random_state=0, num_threads=1)
    >>> se.train_model(bpr, clicks).item_ids[:2].tolist()
    ['N1', 'N10']
    """
    from implicit.recommender_base import ModelFitError  # implicit exports it nowhere else

    if isinstance(model, type) or not callable(getattr(model, "fit", None)):
        name = model.__name__ if isinstance(model, type) else type(model).__name__
        raise UnsupportedModelError(
            f"{name} is not a model that can be fitted; expected an ALS, BPR, LMF or item-item "
            "neighbour model of implicit, as AlternatingLeastSquares(factors=64)"
        )
    if callback is not None and not isinstance(callback, EvaluationCallback):
        raise InvalidDataError(f"callback is {callback!r}; expected an EvaluationCallback")
    matrix = open_train(train)
    # implicit asks for BLAS on one thread while it runs its own; the limit ends with the block.
    # Without the lock of `one_blas_thread`, which no other thread could enter for so long. OpenMP
    # knows no CPU quota of a container.
    with threadpool_limits(limits={"blas": 1, "openmp": thread_count(None)}):
        try:
            with np.errstate(all="ignore"):  # reported below
                if callback is None:
                    _fit(model, matrix, progress)
                else:
                    callback.fit(model, matrix, progress=progress)
        except ModelFitError as error:
            raise SparseEvalError(
                f"the training diverged ({error}); lower alpha or the learning rate, or raise the "
                "regularization"
            ) from error
        if hasattr(model, "item_factors"):
            check_factors(model.user_factors, model.item_factors)
        elif getattr(model, "similarity", None) is not None:
            check_similarity(model.similarity)
    keep_training(model, matrix)
    return model


def _fit(model: Any, matrix: CSRMatrix, progress: bool | None) -> None:
    from implicit.utils import ParameterWarning  # implicit exports it nowhere else

    # A copy, because compiled code cannot read write-protected data; neighbours take only float64.
    dtype = np.float64 if hasattr(model, "similarity") else np.float32
    weights = without_zeros(model, matrix.tocsr().astype(dtype))
    if hasattr(model, "similarity") and (weights.data < 0).any():
        raise InvalidDataError(
            "neighbour models do not accept negative values in train; remove them"
        )
    if not (hasattr(model, "iterations") and hasattr(model, "item_factors")):
        with warnings.catch_warnings():  # neighbours warn about internal conversions
            warnings.simplefilter("ignore", ParameterWarning)
            model.fit(weights, show_progress=False)
        return
    with progress_bar(progress, total=model.iterations, desc="train", unit=" iterations") as bar:
        model.fit(weights, show_progress=False, callback=lambda *_: bar.update())


class TrainingStopped(Exception):  # noqa: N818 - nothing went wrong
    """Raised to end a training whose monitored metric no longer improves.

    The model has its best factors then. `EvaluationCallback.fit`, `train_als` and `train_model`
    catch it and return. The ``fit`` of implicit's models cannot end its loop in another way, so it
    passes the exception on to you.

    See Also
    --------
    EvaluationCallback : What raises it.
    """


class EvaluationCallback:
    r"""Evaluate a model after its training iterations.

    For ALS, BPR and LMF of `implicit`, on the CPU or the GPU. `implicit` does not pass the model to
    a callback, so either let the callback train it, ``callback.fit(model)``, or register it with
    ``on``: ``model.fit(train, callback=callback.on(model))``, which raises `TrainingStopped` at an
    early stop. The factors are the same, bit for bit, as without the callback. In your own training
    loop, such as one of PyTorch, call ``step`` after each epoch.

    Parameters
    ----------
    train : sparse matrix of shape (n_users, n_items), Interactions, frame, path or Holdout
        The training data: every stored entry is seen and not recommended. It must not change
        while the callback is used. ``EvaluationCallback(holdout, metrics)`` stands for both parts
        of a `Holdout`; the users of a split by users are folded in for each evaluation.
    validation : as `train`, or Relevance
        The held-out gains. With ids on both sides they are matched by id; otherwise a smaller
        matrix is padded.
    metrics : str, Metric, iterable of them, or Protocol
        As for `evaluate_model`.
    every : int
        The number of iterations between evaluations. The last iteration is always evaluated.
    patience : int, optional
        Stop after this number of evaluations without a better value of `monitor` than the best so
        far. The model then keeps the factors of its best evaluation, even if the training ran to
        the end. Under the callback's own `fit`, it keeps them too if training failed or was
        interrupted. This needs a copy of the best factors (two for a moment). By default the
        training runs to the end, no copy is kept, and the model keeps its last factors.
    min_delta : float
        With `patience`: how much better a value must be to count as better, at least 0. The model
        still keeps the factors of its best value.
    monitor : str or Metric, optional
        The metric to improve; by default the first of `metrics`. Lower values of some are better,
        such as ``mean_rank`` and ``gini``; see ``sparse-eval metrics NAME``.
    candidates
        As in `evaluate_model`. Metrics among candidates have the kind in their name in `history`
        and for `log`, as ``hit_rate@10 (1+99)``.
    out : str or Path, optional
        A folder, created if missing, where each evaluation saves the model as
        ``iteration_0005.npz``. A file of that name from an earlier training is replaced. If other
        files of an earlier training remain at the end, ``best.npz`` included, a warning names them.
        A file is complete when it appears. Its ``iterations`` are the number that the model was
        configured to run.
    checkpoints : {"all", "best"}
        "best" keeps only the model of the best evaluation so far, as ``best.npz``. A better model
        replaces it once it is written, so the file is the best model's whenever the training ends
        or is killed. A ``best.npz`` of an earlier training is replaced by the first evaluation.
    resume : bool
        Continue a training that was stopped, under `fit`, `train_als` and `train_model`, after the
        last iteration that has a checkpoint in `out`, with the same `history`. Give it in the first
        call too, which writes ``training.jsonl`` next to the checkpoints. ALS ends with the same
        factors, bit for bit; BPR and LMF draw their samples anew from the same seed. More
        iterations of the model continue a training that has ended. Other data, metrics or
        parameters of the model raise an error. See `begin` for your own loop.
    log : callable, optional
        Called after each evaluation with the metrics by name (and ``loss`` if the model computes
        it) and the number of completed iterations.
    log_errors : {"warn", "raise"}
        If `log` raises an exception, such as a tracker without network: "warn" warns once and
        continues the training, "raise" ends it.

    Raises
    ------
    InvalidMetricError
        If a metric is unknown or needs an input that is not given here, or `monitor` is not among
        the metrics.
    InvalidDataError
        If `validation` is larger than `train` or has no relevant item, a value is not finite, or an
        option is out of range. If ``checkpoints="best"`` or `resume` is given without `out`.
    InvalidFileError
        If the checkpoints in `out` are of another training, from `fit` with `resume`.
    OutputError
        If the folder cannot be written to.

    See Also
    --------
    evaluate_model : Evaluate a model that is trained.
    sweep : Evaluate the checkpoints that were saved.

    Notes
    -----
    Each training starts a new history, a warm start included: a second ``fit`` of a model, which
    continues from its factors, counts its iterations from one. The callback releases the model
    when a training ends: register it again, with ``on``, for a second ``fit`` of your own.

    An exception raised during an evaluation or by a failing disk ends the training and is not
    swallowed; the model keeps usable factors. With `patience` or ``checkpoints="best"``, it is an
    error too if `monitor` is NaN because it is defined for no user.

    `track.mlflow` and `track.wandb` connect these trackers, ``log=se.track.mlflow()``; for others a
    function is enough.

    Examples
    --------
    >>> import sparse_eval as se
    >>> from implicit.cpu.bpr import BayesianPersonalizedRanking
    >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    >>> holdout = se.split.random(clicks, seed=0)
    >>> callback = se.EvaluationCallback(
    ...     holdout.train, holdout.validation, ["ndcg@10", "recall@20"], every=5, patience=3
    ... )
    >>> model = callback.fit(BayesianPersonalizedRanking(8, iterations=20, random_state=0))
    >>> callback.history.columns.tolist()
    ['train_seconds', 'evaluate_seconds', 'ndcg@10', 'recall@20']
    >>> callback.history.index.tolist()
    [5, 10, 15, 20]
    >>> callback.best_iteration == int(callback.history["ndcg@10"].idxmax())
    True

    If you call ``fit`` yourself:

    >>> model.fit(holdout.train.csr, show_progress=False, callback=callback.on(model))

    In a loop of your own:

    >>> users, items = model.user_factors, model.item_factors
    >>> for epoch in range(20):
    ...     users, items = users * 0.9, items * 0.9  # your training
    ...     if callback.step((users, items), epoch):
    ...         break
    >>> users, items = callback.best_factors
    """

    @show_spelling
    def __init__(
        self,
        train: Holdout | TrainLike,
        validation: TrainLike | MetricsLike | None = None,
        metrics: MetricsLike | None = None,
        *,
        every: int = 1,
        patience: int | None = None,
        min_delta: float = 0.0,
        monitor: str | Metric | None = None,
        candidates: CandidatesLike | None = None,
        out: PathLike | None = None,
        checkpoints: Literal["all", "best"] = "all",
        resume: bool = False,
        log: Callable[[dict[str, float], int], object] | None = None,
        log_errors: Literal["warn", "raise"] = "warn",
    ) -> None:
        parts, held_out, metrics = split_arguments(train, validation, metrics)
        request, self.monitor = parse_monitored(metrics, monitor, among=candidates is not None)
        self._every = check_whole("every", every, 1)
        self._patience = None if patience is None else check_whole("patience", patience, 1)
        self._min_delta = check_number("min_delta", min_delta, 0)
        if self._min_delta and patience is None:
            raise InvalidDataError("min_delta needs patience=, the number of evaluations to wait")
        self._log = log
        self._log_warns = check_choice("log_errors", log_errors, ("warn", "raise")) == "warn"
        self._only_best = check_choice("checkpoints", checkpoints, ("all", "best")) == "best"
        self._resume = check_flag("resume", resume)
        if (self._only_best or self._resume) and out is None:
            needed = "resume=True continues from" if self._resume else "checkpoints='best' keeps"
            raise InvalidDataError(f"{needed} a checkpoint; name its folder with out=")
        # Raise for unsuitable data now, not after an iteration.
        self.scoring = Scoring.of(parts, held_out, request, candidates)
        self._train = self.scoring.matrix
        self._names = self.scoring.names
        #: The column of the monitored metric.
        self.monitored = self._names[str(self.monitor)]
        self._folder = None if out is None else make_folder(out)
        self._training = _Training()

    def __repr__(self) -> str:
        return f"EvaluationCallback({', '.join(self._names.values())}; {self.describe()})"

    def describe(self) -> str:
        """Return the last training in a few words: how many evaluations, and the best."""
        rows = self._training.rows
        done = f"{len(rows):,} evaluation{'' if len(rows) == 1 else 's'}"
        if (best := self._best()) is None:
            return done
        value = f"{self.monitored} {number(best[self.monitored])}"
        return f"{done}, best {value} after iteration {best['iteration']}"

    def _repr_html_(self) -> str:
        table = self.history.reset_index()
        for name in table.columns[1:]:
            table[name] = [number(value) for value in table[name]]
        return as_html(repr(self), table, "history")

    @property
    def history(self) -> pd.DataFrame:
        """One row for each evaluation of the last training.

        Indexed by ``iteration``, the number of completed iterations. Columns: ``train_seconds``
        since the previous evaluation, as `implicit` measures them; ``evaluate_seconds``; ``loss``
        if the model computes it (ALS with ``calculate_training_loss=True``); the mean of each
        metric.
        """
        import pandas as pd

        rows = self._training.rows
        loss = ["loss"] if any("loss" in row for row in rows) else []
        names = ["train_seconds", "evaluate_seconds", *loss, *self._names.values()]
        return pd.DataFrame(rows, columns=["iteration", *names]).set_index("iteration")

    @property
    def best_iteration(self) -> int | None:
        """The number of iterations after which `monitor` was best, the first of equal ones.

        Of the last training; None before its first evaluation.
        """
        best = self._best()
        return None if best is None else int(best["iteration"])

    @property
    def best_value(self) -> float | None:
        """The value of `monitor` after `best_iteration`; None before the first evaluation."""
        best = self._best()
        return None if best is None else best[self.monitored]

    @property
    def best_factors(self) -> tuple[AnyArray, AnyArray] | None:
        """The factors of users and items after `best_iteration`; None without `patience`."""
        return self._training.best_factors

    def on(self, model: Model) -> EvaluationCallback:
        """Register the model whose ``fit`` will call the callback.

        Parameters
        ----------
        model : model of implicit
            ALS, BPR or LMF; a fitted model continues from its factors.

        Returns
        -------
        EvaluationCallback
            The same object, for ``model.fit(train, callback=callback.on(model))``, where `train`
            has the same rows and columns as the callback's training data. With `patience`, that
            ``fit`` raises `TrainingStopped` at an early stop, and the model has its best factors.
            If it is interrupted, the model keeps its current factors. The callback does not
            know the data passed to ``fit``. So the model gets neither ids nor a record of its
            training data, as after any ``fit`` of implicit.

        Raises
        ------
        UnsupportedModelError
            If the model is not trained in iterations, or, with a checkpoint folder, its
            ``random_state`` could only be saved by pickle.
        InvalidDataError
            If the model is fitted, and not to the users and items of `train`.
        """
        self._register(model)
        return self

    def _register(self, model: Any) -> None:
        """Begin the training of a model, which the next calls evaluate."""
        if not (hasattr(model, "item_factors") and hasattr(model, "iterations")):
            raise UnsupportedModelError(
                f"a {type(model).__name__} is not trained in iterations; expected an ALS, BPR or "
                "LMF model of implicit"
            )
        seed = getattr(model, "random_state", None)
        if self._folder is not None and not isinstance(seed, int | np.integer | None):
            raise UnsupportedModelError(
                f"the model's random_state is a {type(seed).__name__}, which a checkpoint could "
                "store only as a pickle. Use a whole number"
            )
        if model.item_factors is not None:
            self._check_shape(as_model(model))
        keep_training(model, None)
        self._training = _Training(model)

    def fit(
        self, model: Model, train: SparseInput | None = None, *, progress: bool | None = None
    ) -> Model:
        """Train and evaluate a model until its last iteration or an early stop.

        Parameters
        ----------
        model : model of implicit
            As for `on`.
        train : scipy sparse matrix or array, shape (n_users, n_items), optional
            Training data with other values than the callback's `train`, such as weights. BPR, which
            treats every stored entry as positive, is trained without explicit zeros.
        progress : bool, optional
            Show a progress bar with the monitored metric; by default on a terminal only.

        Returns
        -------
        model
            The same model, fitted.

        Raises
        ------
        InvalidDataError
            If `train` does not have the shape of the callback's, or the factors are no longer
            finite.
        SparseEvalError
            As `on` and `evaluate_model`.
        OutputError
            If a checkpoint cannot be written.
        """
        matrix = self._train if train is None else open_train(train)
        for own, other in zip(labels_of(self._train), labels_of(matrix), strict=True):
            if own is not None and other is not None and not own.equals(other):
                raise InvalidDataError(
                    "train has different users or items from the callback's, or a different "
                    "order. Make the callback with the data that the model is trained on"
                )
        self._register(model)
        training, name = self._training, self.monitored
        training.data = matrix
        if matrix.users is matrix.items is None and matrix.shape == self._train.shape:
            training.data = replace(matrix, users=self._train.users, items=self._train.items)
        done, total = self._resumed(model, matrix) if self._resume else 0, model.iterations
        if done == total or self._is_over():
            training.end()
            return model
        with progress_bar(
            progress, total=total, initial=done, desc="train", unit=" iterations"
        ) as bar:

            def after_iteration(iteration: int, seconds: float, *more: Any) -> None:
                model.iterations = total  # the loop of implicit has begun, with those that are left
                try:
                    self(done + iteration, seconds, *more)
                finally:
                    last = training.rows[-1] if training.rows else {}
                    shown = {key: f"{last[key]:.4f}" for key in ("loss", name) if key in last}
                    shown["best after"] = str(self.best_iteration)
                    bar.set_postfix(shown, refresh=False)
                    bar.update()

            try:
                # A copy, because implicit's compiled code cannot read write-protected arrays.
                weights = without_zeros(model, matrix.tocsr().astype(np.float32))
                model.iterations = total - done
                with suppress(TrainingStopped):
                    model.fit(weights, show_progress=False, callback=after_iteration)
            finally:
                model.iterations = total
                training.end()
        return model

    def _resumed(self, model: Any, train: LabelledMatrix) -> int:
        """Give a model the factors of its last checkpoint; return its number of iterations."""
        if hasattr(model, "to_cpu"):
            raise UnsupportedModelError("resume=True needs a model that is trained on the CPU")
        parameters = {
            name: plain(value)
            for name, value in vars(model).items()
            if isinstance(value, str | int | float | np.dtype)
            and name not in ("iterations", "num_threads")
        }
        about = {"class": type(model).__name__, **parameters}
        done, factors = self._continue(train, about, model.iterations)
        if factors is not None:
            model.user_factors, model.item_factors = factors
        return done

    def begin(self) -> tuple[int, tuple[AnyArray, AnyArray] | None]:
        """Begin a training loop of your own, or continue the one in `out` with `resume`.

        Returns
        -------
        done : int
            The number of epochs that are done: 0 for a new training.
        factors : tuple of ndarray, or None
            The factors of users and items after these epochs, None for a new training.

        Raises
        ------
        InvalidFileError
            If the checkpoints in `out` are of other data or metrics. Hyperparameters of your loop
            are not known here: choose a folder for each.

        Examples
        --------
        >>> done, factors = callback.begin()  # doctest: +SKIP
        >>> for epoch in range(done, 50):  # doctest: +SKIP
        ...     train_one_epoch(users, items)
        ...     if callback.step((users, items), epoch):
        ...         break
        """
        self._training = _Training()
        return self._continue(self._train, {}, math.inf) if self._resume else (0, None)

    def step(self, model: ModelLike, epoch: int) -> bool:
        """Evaluate a model that a loop of your own trains, save it and log it, if it is due.

        Parameters
        ----------
        model : as for `evaluate_model`
            The model after the epoch, such as a pair of factors, as arrays or detached tensors, or
            the result of `factor_model`.
        epoch : int
            The epoch, from 0. Another one is due every `every` epochs; the last one of the loop is
            not known here. An epoch that is not later than the one before begins a new training.

        Returns
        -------
        bool
            Whether to end the training, as `patience` asks for: leave the loop, and take
            `best_factors`.

        Raises
        ------
        InvalidDataError
            If the model has other users or items than `train`, or with `resume` there was no
            `begin`.
        UnsupportedModelError
            If the model cannot be saved to `out`, or has no factors to resume from.
        SparseEvalError
            What `evaluate_model` raises.
        """
        done = check_whole("epoch", epoch, 0) + 1
        if self._training.rows and done <= self._training.rows[-1]["iteration"]:
            self._training = _Training()
        training = self._training
        if self._resume and training.ledger is None:
            raise InvalidDataError(
                "resume=True continues after the last checkpoint. Start the loop there, with done, "
                "factors = callback.begin()"
            )
        if done % self._every or self._is_over():
            return self._is_over()
        opened = as_model(model)
        if opened.factors is None and self._resume:
            raise UnsupportedModelError(f"resume=True needs a model of factors, not {opened.name}")
        training.seconds = perf_counter() - training.since
        self._evaluate(opened, done)
        training.since = perf_counter()
        return self._is_over()

    def _continue(
        self, train: LabelledMatrix, model: Row, most: float
    ) -> tuple[int, tuple[AnyArray, AnyArray] | None]:
        """Continue the training in the folder after its last checkpoint of up to `most` iterations.

        Returns
        -------
        tuple of int, and tuple of ndarray or None
            The number of iterations, and the factors of the checkpoint.
        """
        assert self._folder is not None  # noqa: S101 - a training is resumed from a folder
        training = self._training
        ledger = training.ledger = Ledger(self._folder / "training.jsonl", "training")
        ledger.agree(INPUTS, self.scoring.inputs | {"weights": digest_of(train), "model": model})
        rows = sorted(ledger.results, key=lambda row: int(row["values"]["iteration"]))
        rows = [row for row in rows if row["values"]["iteration"] <= most]
        factors = None
        while rows and factors is None:
            try:
                factors = self._factors_of(rows[-1])
            except InvalidFileError:  # not kept, or a later training has replaced it
                rows.pop()
        training.rows = [
            {name: math.nan if x is None else x for name, x in row["values"].items()}
            for row in rows
        ]
        if self._patience is not None and (best := self._best()) is not None:
            training.best_factors = self._factors_of(rows[training.rows.index(best)])
        return int(training.rows[-1]["iteration"]) if rows else 0, factors

    def _factors_of(self, row: Row) -> tuple[AnyArray, AnyArray]:
        """Return the factors in the checkpoint of a row, or raise `InvalidFileError`."""
        assert self._folder is not None  # noqa: S101 - a training is resumed from a folder
        path = self._folder / (row["file"] or BEST)
        found = read_checkpoint(path).model
        if digest_file(path) != row["sha256"]:
            raise InvalidFileError("is not a checkpoint of this training", path)
        return np.array(found.user_factors), np.array(found.item_factors)

    def __call__(self, iteration: int, seconds: float, *more: Any) -> None:
        """Evaluate the registered model if it is due; `implicit` calls this after each iteration.

        Parameters
        ----------
        iteration : int
            The iteration, from 0.
        seconds : float
            The duration of the iteration.
        *more
            Depends on the model: the loss or None for ALS, two counts for BPR.
        """
        training = self._training
        model = training.model
        if model is None:
            raise UnsupportedModelError(
                "implicit does not pass the model to a callback. Use fit(..., "
                "callback=callback.on(model)), or callback.fit(model)"
            )
        training.seconds += seconds
        done = iteration + 1
        last = done == model.iterations
        if done % self._every and not last:
            return
        opened = as_model(model)
        if not training.rows:
            self._check_shape(opened)
        trained = copy(opened.trained)
        if training.data is None:
            keep_ids(trained, *labels_of(self._train))
        else:
            keep_training(trained, training.data)
        loss = more[0] if len(more) == 1 else None
        self._evaluate(ImplicitFactors.of_model(trained), done, loss)
        if last or self._is_over():
            training.end()
            self._warn_of_others()
        if self._is_over() and not last:
            raise TrainingStopped(
                f"stopped after {done} iterations; {self.monitor} was best after "
                f"{self.best_iteration}. The model has these factors. Catch this exception, or "
                "train with callback.fit(model), which returns"
            )

    def _evaluate(self, model: AnyModel, done: int, loss: Any = None) -> None:
        """Evaluate a model after so many iterations, save it and log its metrics."""
        training, start = self._training, perf_counter()
        ev = self.scoring.evaluate(model, Execution(progress=False))
        values = {self._names[name]: value for name, value in ev.mean().items()}
        times = {"train_seconds": training.seconds, "evaluate_seconds": perf_counter() - start}
        training.seconds = 0.0
        if loss is not None:
            values["loss"] = float(loss)
        training.rows.append({"iteration": done, **times, **values})
        if math.isnan(values[self.monitored]) and (self._patience is not None or self._only_best):
            raise InvalidMetricError(
                f"{self.monitor} is defined for no user after {done} iterations, so no iteration "
                "is the best; monitor another metric"
            )
        is_best = self.best_iteration == done
        if is_best and self._patience is not None and model.factors is not None:
            training.best_factors = np.array(model.factors[0]), np.array(model.factors[1])
        path = self._save(model, done) if is_best or not self._only_best else None
        if training.ledger is not None:
            row = {key: plain(value) for key, value in training.rows[-1].items()}
            file, sha256 = (None, None) if path is None else (path.name, digest_file(path))
            training.ledger.append(str(done), values=row, file=file, sha256=sha256)
        if self._log is not None:
            self._log_values(self._log, values, done)

    def _save(self, model: AnyModel, done: int) -> Path | None:
        """Save a checkpoint after so many iterations, if there is a folder, and return its path."""
        if self._folder is None:
            return None
        users, items = ids_of(model)
        if users is items is None:
            users, items = labels_of(self._train)
        saved: Any = model.trained or model
        return save_model(saved, self._folder / self._file_of(done), users=users, items=items)

    def _log_values(
        self, log: Callable[[dict[str, float], int], object], values: dict[str, float], done: int
    ) -> None:
        """Pass values to the user's `log`; if it fails, warn once, or raise."""
        try:
            log(values, done)
        except Exception as error:
            if not self._log_warns:
                raise
            if not self._training.has_warned:
                warn(
                    f"log= failed after iteration {done}, and the training goes on: "
                    f"{type(error).__name__}: {error}"
                )
            self._training.has_warned = True

    def _file_of(self, done: int) -> str:
        """Return the name of the checkpoint after so many iterations."""
        return BEST if self._only_best else f"iteration_{done:04d}.npz"

    def _warn_of_others(self) -> None:
        """Warn about checkpoints in the folder that an earlier training left."""
        if self._folder is None:
            return
        own = {self._file_of(int(row["iteration"])) for row in self._training.rows}
        found = [self._folder / BEST, *sorted(self._folder.glob("iteration_*[0-9].npz"))]
        others = [path.name for path in found if path.name not in own and path.exists()]
        if others:
            warn(
                f"{self._folder} also has checkpoints of an earlier training, such "
                f"as {others[-1]}, which would be compared with the new ones. Remove them, or use "
                "another folder"
            )

    def _check_shape(self, model: AnyModel) -> None:
        """Raise an error unless a model has as many users and items as `train`."""
        for role, size, expected in zip(
            ("users", "items"), self._train.shape, model.shape, strict=True
        ):
            if expected is not None:
                check_size(role, size, expected)

    def _best(self, min_delta: float = 0.0) -> dict[str, float] | None:
        """Return the evaluation with the best monitored value, the first of several."""
        rows = self._training.rows
        return best_of(rows, self.monitor, lambda row: row[self.monitored], min_delta)

    def _is_over(self) -> bool:
        """Return whether none of the last evaluations, as many as `patience`, is the best."""
        if self._patience is None or (best := self._best(self._min_delta)) is None:
            return False
        return best not in self._training.rows[-self._patience :]


@dataclass(slots=True)
class _Training:
    """The state of one training; the data are not known if the model's own ``fit`` gets them."""

    model: Any = None
    data: LabelledMatrix | None = None
    rows: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0
    best_factors: tuple[AnyArray, AnyArray] | None = None
    ledger: Ledger | None = None
    since: float = field(default_factory=perf_counter)
    has_warned: bool = False

    def end(self) -> None:
        """Restore the best factors of the model, if they were kept, describe and release it.

        Otherwise it would be evaluated in place of the next model trained with this callback.
        """
        model, self.model = self.model, None
        if model is None:
            return
        if self.best_factors is not None:
            users, items = self.best_factors
            matrix = type(model.item_factors)
            if not issubclass(matrix, np.ndarray):  # a matrix on the GPU
                users, items = matrix(users), matrix(items)
            model.user_factors, model.item_factors = users, items
            for name in _DERIVED:
                if hasattr(model, name):
                    setattr(model, name, None)
        if self.data is not None and model.item_factors is not None:
            keep_training(model, self.data)
