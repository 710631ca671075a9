"""Evaluating a model of `implicit` while it is trained, and stopping when it improves no more."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from tqdm.auto import tqdm

from ..core.arguments import check_whole
from ..core.files import make_folder, replacing
from ..core.progress import is_shown
from ..errors import InvalidDataError, InvalidMetricError, UnsupportedModelError
from ..metrics import STANDARD, Metric
from ..metrics.measure import make_plans
from .implicit import evaluate_model, parse_cut_metrics
from .inputs import held_out_part, train_part
from .monitor import goodness, monitored
from .recommend import catalogue

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["EvaluationCallback", "TrainingStopped"]

#: What implicit computes from the factors when it is first asked for, and keeps.
_DERIVED = ("_user_norms", "_item_norms", "_user_norms_host", "_item_norms_host", "_YtY", "_XtX")


class TrainingStopped(Exception):  # noqa: N818 - nothing went wrong
    """Ends a training whose monitored metric improves no more.

    `EvaluationCallback.fit` catches it. Around a ``fit`` of your own it is yours to catch; the
    model has its best factors by then.
    """


class EvaluationCallback:
    r"""Evaluates a model of `implicit` after its training iterations.

    For ALS, BPR and LMF, on the CPU or the GPU. `implicit` does not tell a callback the model, so
    either let the callback train it, ``callback.fit(model)``, or hand it over with ``on``:
    ``model.fit(train, callback=callback.on(model))``. The factors are the same, bit for bit, as
    without the callback.

    Parameters
    ----------
    train : scipy sparse matrix or array, shape (n_users, n_items)
        What the model is trained on: every stored entry is seen and not recommended. It must not
        change while the callback is used.
    validation : Relevance, or scipy sparse matrix or array, shape (n_users, n_items)
        The held-out gains. A smaller matrix is padded.
    metrics : str, Metric or iterable of them
        As for `evaluate_model`, each with a cut-off.
    every : int
        Evaluate after every so many iterations, and after the last one.
    patience : int, optional
        Stop after so many evaluations without a better value of `monitor` than the best so far.
        With it the model is left with the factors of its best evaluation, whether the training
        was stopped, ran through or, under the callback's own `fit`, failed or was interrupted. A
        copy of the best factors is kept for that (two for a moment). Without it the training runs
        through, no copy is kept, and the last factors stay.
    monitor : str or Metric
        Which of `metrics` to improve. Higher is better, but of ``gini`` and ``popularity`` lower.
    checkpoint_dir : str or Path, optional
        A folder, made if it is not there, in which each evaluation saves the model as
        ``iteration_0005.npz``. A file of that name, from an earlier training, is replaced; others
        of a longer one stay. The file is complete when it appears. Its ``iterations`` are those
        that the model was to do.
    log : callable, optional
        Called after each evaluation with the metrics by name (and ``loss`` where there is one)
        and the number of iterations done.

    Raises
    ------
    InvalidMetricError
        If a metric is unknown, has no cut-off or needs an input that is not given here, or
        `monitor` is not among the metrics.
    InvalidDataError
        If `validation` is larger than `train` or has nothing relevant, a value is not finite, or
        an option is out of its range.
    OutputError
        If the folder cannot be written to.

    Notes
    -----
    Each training starts a new history, a warm start too: a second ``fit`` of a model that goes on
    from its factors counts its iterations from one. When a training ends, the callback lets go of
    the model: hand it over again, with ``on``, to a second ``fit`` of your own.

    What is raised during an evaluation, by `log` or by a disk that fails ends the training and is
    not swallowed; the model keeps usable factors. With `patience`, a `monitor` that is NaN,
    because it is defined for no user, is an error too.

    A tracker is a function. MLflow takes no ``@``, brackets or ``=`` in names::

        def log(values, step):
            names = {re.sub(r"[^\w.-]", "_", name): value for name, value in values.items()}
            mlflow.log_metrics(names, step=step)

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
    >>> callback.best_iteration == callback.history["ndcg@10"].idxmax()
    True

    In a ``fit`` of your own, an early stop is an exception:

    >>> from contextlib import suppress
    >>> from sparse_eval.models.callback import TrainingStopped
    >>> with suppress(TrainingStopped):
    ...     model.fit(holdout.train, show_progress=False, callback=callback.on(model))
    """

    def __init__(
        self,
        train: Any,
        validation: Any,
        metrics: str | Metric | Iterable[str | Metric],
        every: int = 1,
        patience: int | None = None,
        monitor: str | Metric = "ndcg@10",
        checkpoint_dir: str | Path | None = None,
        log: Callable[[dict[str, float], int], object] | None = None,
    ) -> None:
        self._metrics = parse_cut_metrics(metrics)
        make_plans(self._metrics, STANDARD, frozenset({"train"}))  # says what a metric lacks
        self._monitor = monitored(monitor, self._metrics)
        self._every = check_whole("every", every, 1)
        self._patience = None if patience is None else check_whole("patience", patience, 1)
        if log is not None and not callable(log):
            raise InvalidDataError(
                f"log is {log!r}; expected a function of the metrics and the iteration"
            )
        self._log = log
        self._train = train_part(train)
        self._relevance = held_out_part(validation, self._train.shape)
        self._folder = None if checkpoint_dir is None else make_folder(checkpoint_dir)
        self._training = _Training()

    @property
    def history(self) -> pd.DataFrame:
        """One row for each evaluation of the last training.

        Indexed by ``iteration``, the number of iterations done. ``train_seconds`` since the
        evaluation before, as `implicit` measures them; ``evaluate_seconds``; ``loss`` where the
        model computes one (ALS with ``calculate_training_loss=True``); the mean of each metric.
        """
        import pandas as pd

        rows = self._training.rows
        loss = ["loss"] if any("loss" in row for row in rows) else []
        names = ["train_seconds", "evaluate_seconds", *loss, *map(str, self._metrics)]
        return pd.DataFrame(rows, columns=["iteration", *names]).set_index("iteration")

    @property
    def best_iteration(self) -> int | None:
        """After how many iterations of the last training `monitor` was best, of equals the first.

        None before the first evaluation.
        """
        return self._training.best_iteration

    def on(self, model: Any) -> EvaluationCallback:
        """Tell the callback whose ``fit`` will call it.

        Parameters
        ----------
        model : model of implicit
            ALS, BPR or LMF, not fitted, or fitted to go on from its factors.

        Returns
        -------
        EvaluationCallback
            Itself, for ``model.fit(train, callback=callback.on(model))``. That ``fit`` raises
            `TrainingStopped` when `patience` ends it. Interrupted, it leaves the factors as they
            are, not the best.

        Raises
        ------
        UnsupportedModelError
            If the model is not trained in iterations, or, with a checkpoint folder, its
            ``random_state`` is one that only pickle could save.
        InvalidDataError
            If it is fitted to other users and items than those of `train`.
        """
        if not (hasattr(model, "item_factors") and hasattr(model, "iterations")):
            raise UnsupportedModelError(
                f"a {type(model).__name__} is not trained in iterations; expected an ALS, BPR or "
                "LMF model of implicit"
            )
        seed = getattr(model, "random_state", None)
        if self._folder is not None and not isinstance(seed, int | np.integer | None):
            raise UnsupportedModelError(
                f"the model's random_state is a {type(seed).__name__}, which a checkpoint could "
                "hold as pickle only; give the model a whole number"
            )
        if model.item_factors is not None and catalogue(_on_cpu(model)) != self._train.shape:
            n_users, n_items = catalogue(_on_cpu(model))
            raise InvalidDataError(
                f"the model is fitted to {n_users} users and {n_items} items, train has shape "
                f"{self._train.shape}; give the matrix it was trained on, or a new model"
            )
        self._training = _Training(model)
        return self

    def fit(self, model: Any, train: Any = None, progress: bool | None = None) -> Any:
        """Train a model, evaluating it, until its last iteration or an early stop.

        Parameters
        ----------
        model : model of implicit
            As for `on`.
        train : scipy sparse matrix or array, shape (n_users, n_items), optional
            What to train on where its values are others than those of the callback's `train`,
            such as weights.
        progress : bool, optional
            Show a progress bar with the monitored metric; by default on a terminal only.

        Returns
        -------
        model
            The same one, fitted.

        Raises
        ------
        InvalidDataError
            If `train` has another shape than the callback's, or the factors are no longer finite.
        SparseEvalError
            As `on`, and whatever `evaluate_model` raises.
        OutputError
            If a checkpoint cannot be written.
        """
        matrix = self._train if train is None else train_part(train)
        if matrix.shape != self._train.shape:
            raise InvalidDataError(
                f"train has shape {matrix.shape}, the callback's {self._train.shape}; expected the "
                "same users and items"
            )
        after = self.on(model)
        with tqdm(total=model.iterations, desc="train", disable=not is_shown(progress)) as bar:

            def after_iteration(*told: Any) -> None:
                bar.update()
                try:
                    after(*told)
                finally:
                    bar.set_postfix(self._last_values())

            try:
                # A copy of its own: implicit's compiled code cannot read what is write-protected.
                weights = matrix.astype(np.float32)
                model.fit(weights, show_progress=False, callback=after_iteration)
            except TrainingStopped:
                pass
            except BaseException:
                self._training.end()
                raise
        return model

    def __call__(self, iteration: int, seconds: float, *more: Any) -> None:
        """Evaluate, as `implicit` asks for after each iteration.

        Parameters
        ----------
        iteration : int
            The iteration, from 0.
        seconds : float
            What it took.
        *more
            Differs between the families: ALS tells the loss or None, BPR two counts.
        """
        model = self._training.model
        if model is None:
            raise UnsupportedModelError(
                "implicit does not tell a callback the model; write fit(..., "
                "callback=callback.on(model)), or callback.fit(model)"
            )
        training = self._training
        training.seconds += seconds
        done = iteration + 1
        last = done == model.iterations
        if done % self._every and not last:
            return
        on_cpu = _on_cpu(model)
        start = perf_counter()
        ev = evaluate_model(on_cpu, self._train, self._relevance, self._metrics, progress=False)
        values = ev.mean()
        times = {"train_seconds": training.seconds, "evaluate_seconds": perf_counter() - start}
        training.seconds = 0.0
        if len(more) == 1 and more[0] is not None:
            values["loss"] = float(more[0])
        training.rows.append({"iteration": done, **times, **values})
        score = goodness(self._monitor, values[str(self._monitor)])
        if math.isnan(score) and self._patience is not None:
            raise InvalidMetricError(
                f"{self._monitor} is defined for no user after {done} iterations, so nothing says "
                "when to stop; monitor another metric"
            )
        if score > training.best_score:
            training.best_score, training.best_iteration, training.waited = score, done, 0
            if self._patience is not None:
                training.best_factors = on_cpu.user_factors.copy(), on_cpu.item_factors.copy()
        else:
            training.waited += 1
        if self._folder is not None:
            with replacing(self._folder / f"iteration_{done:04d}.npz") as temporary:
                on_cpu.save(str(temporary))
        if self._log is not None:
            self._log(values, done)
        if last:
            training.end()
        elif training.waited == self._patience:
            training.end()
            raise TrainingStopped(
                f"stopped after {done} iterations; {self._monitor} was best after "
                f"{training.best_iteration}"
            )

    def _last_values(self) -> dict[str, str]:
        """Return what the progress bar shows."""
        rows = self._training.rows
        if not rows:
            return {}
        names = [name for name in ("loss", str(self._monitor)) if name in rows[-1]]
        shown = {name: f"{rows[-1][name]:.4f}" for name in names}
        return {**shown, "best after": str(self.best_iteration)}


@dataclass(slots=True)
class _Training:
    """What is known of one training so far."""

    model: Any = None
    rows: list[dict[str, float]] = field(default_factory=list)
    seconds: float = 0.0
    best_score: float = -math.inf
    best_iteration: int | None = None
    best_factors: tuple[NDArray[Any], NDArray[Any]] | None = None
    waited: int = 0

    def end(self) -> None:
        """Give the model its best factors, if they were kept, and let go of it.

        It would be evaluated in place of the next one that is trained with this callback.
        """
        model, self.model = self.model, None
        if model is None or self.best_factors is None:
            return
        users, items = self.best_factors
        matrix = type(model.item_factors)
        if not issubclass(matrix, np.ndarray):  # a matrix of the GPU
            users, items = matrix(users), matrix(items)
        model.user_factors, model.item_factors = users, items
        for name in _DERIVED:
            if hasattr(model, name):
                setattr(model, name, None)


def _on_cpu(model: Any) -> Any:
    return model.to_cpu() if hasattr(model, "to_cpu") else model
