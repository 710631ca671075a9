"""Log metrics to MLflow or Weights & Biases, under names that they accept."""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..core.arguments import check_whole
from ..errors import InvalidDataError, MissingExtraError, SparseEvalError
from ..results.evaluation import Evaluation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Tracker", "mlflow", "wandb"]


class Tracker:
    """Logs metrics to a tracker: what `mlflow` and `wandb` return.

    A name keeps its letters, digits and underscores; ``@`` becomes ``_at_``, ``)`` is left out, and
    every other sign becomes an underscore: ``ndcg@10`` is ``ndcg_at_10``, and ``rbp(p=0.8)@10`` is
    ``rbp_p_0_8_at_10``.

    Parameters
    ----------
    send : callable
        Given the metrics by their new names, and the step or None.
    prefix : str
        Before every name, such as ``validation/``.

    Examples
    --------
    >>> import sparse_eval as se
    >>> tracker = se.track.Tracker(print, prefix="validation/")
    >>> tracker
    Tracker(prefix='validation/')
    >>> tracker({"ndcg@10": 0.25, "recall(items=repeat)@5": 0.5}, 3)
    {'validation/ndcg_at_10': 0.25, 'validation/recall_items_repeat_at_5': 0.5} 3
    """

    def __init__(
        self, send: Callable[[dict[str, float], int | None], object], *, prefix: str = ""
    ) -> None:
        if not (isinstance(prefix, str) and re.fullmatch(r"(\w[\w-]*/)*", prefix)):
            raise InvalidDataError(
                f"prefix is {prefix!r}; expected words that end in a slash, as 'validation/'"
            )
        self._send = send
        self._prefix = prefix
        self._original: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"Tracker(prefix={self._prefix!r})"

    def __call__(self, values: Evaluation | Mapping[str, float], step: int | None = None) -> None:
        """Log the means of an evaluation, or metrics by name, as a callback's ``log=`` is given.

        Raises `InvalidDataError` if two different metrics get the same name.

        Parameters
        ----------
        step : int, optional
            The number of completed iterations, from 0.
        """
        by_name = values.mean() if isinstance(values, Evaluation) else values
        if step is not None:
            step = check_whole("step", step, 0)
        self._send({self._renamed(name): float(value) for name, value in by_name.items()}, step)

    def _renamed(self, name: str) -> str:
        renamed = self._prefix + re.sub(r"\W", "_", name.replace("@", "_at_").replace(")", ""))
        other = self._original.setdefault(renamed, name)
        if other != name:
            raise InvalidDataError(
                f"{other} and {name} would both be logged as {renamed}; log one of them by another "
                "tracker with a prefix="
            )
        return renamed


def mlflow(run_id: str | None = None, *, prefix: str = "") -> Tracker:
    """Return a function that logs metrics to MLflow.

    Parameters
    ----------
    run_id : str, optional
        By default the active run, which MLflow starts if there is none.
    prefix : str
        Added before every name, such as ``validation/`` or ``test/``, to log several parts
        separately.

    Returns
    -------
    Tracker
        For the `log` of an `EvaluationCallback`, or to be called with an `Evaluation`.

    Raises
    ------
    MissingExtraError
        If MLflow is not installed.

    Examples
    --------
    >>> import sparse_eval as se
    >>> callback = se.EvaluationCallback(  # doctest: +SKIP
    ...     holdout, "ndcg@10", log=se.track.mlflow(prefix="validation/")
    ... )
    >>> se.track.mlflow(prefix="test/")(ev)  # doctest: +SKIP
    """
    client = _import("mlflow", "mlflow-skinny")

    def send(values: dict[str, float], step: int | None) -> None:
        client.log_metrics(values, step=step, run_id=run_id)

    return Tracker(send, prefix=prefix)


def wandb(run: Any = None, *, prefix: str = "") -> Tracker:
    """Return a function that logs metrics to Weights & Biases.

    Values with a step are drawn over the metric ``iteration``, which has the `prefix` too. The
    steps of W&B itself count calls, and it drops values with an earlier step. What has none, a
    finished evaluation, is put into the summary of the run.

    Parameters
    ----------
    run : wandb.Run, optional
        By default the active run.
    prefix : str
        Before every name, such as ``validation/``, which W&B makes a section.

    Returns
    -------
    Tracker
        For the `log` of an `EvaluationCallback`, or to be called with an `Evaluation`.

    Raises
    ------
    MissingExtraError
        If W&B is not installed.
    SparseEvalError
        If there is no active run when metrics are logged.

    Examples
    --------
    >>> import sparse_eval as se
    >>> callback = se.EvaluationCallback(  # doctest: +SKIP
    ...     holdout, "ndcg@10", log=se.track.wandb(prefix="validation/")
    ... )
    >>> se.track.wandb(prefix="test/")(ev)  # doctest: +SKIP
    """
    client = _import("wandb", "wandb")
    over = f"{prefix}iteration"

    def send(values: dict[str, float], step: int | None) -> None:
        active = client.run if run is None else run
        if active is None:
            raise SparseEvalError("W&B has no active run; call wandb.init() first, or give run=")
        if step is None:
            active.summary.update(values)
            return
        for name in values:
            active.define_metric(name, step_metric=over)
        active.log({over: step, **values})

    return Tracker(send, prefix=prefix)


def _import(name: str, package: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        raise MissingExtraError(f"{name} is not installed: pip install {package}") from None
