"""The data, candidates and metrics for scoring models in jobs, checked and converted once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ..core.hashing import digest_csr
from ..core.versions import NUMBERS_VERSION
from ..datasets.split.holdout import Holdout
from ..datasets.split.parts import digest_of, name_of, open_held_out, open_train
from ..errors import InvalidDataError, InvalidMetricError
from ..inputs.alignment import match_split
from ..inputs.candidates import JUDGED, as_candidates, is_sampled, name_among
from ..metrics import Metric, parse_metrics
from ..metrics.request import Request
from ..models.evaluate_model import evaluate_request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..datasets.split.parts import CandidatesLike, TrainLike
    from ..evaluation.execution import Execution
    from ..inputs.candidates import Candidates
    from ..inputs.labelled import LabelledMatrix
    from ..inputs.relevance import Relevance
    from ..metrics.request import MetricsLike
    from ..results import Evaluation

One = TypeVar("One")


def parse_monitored(
    metrics: MetricsLike,
    monitor: str | Metric | None,
    convention: str | None = None,
    *,
    among: bool = False,
) -> tuple[Request, Metric]:
    """Return the request of a job that compares models, and the metric that decides.

    Raises `InvalidMetricError` if a metric is unknown or needs an input that is not given, or
    `monitor` is not one of `metrics`.

    Parameters
    ----------
    metrics : str, Metric, iterable of them, or Protocol
        As for `evaluate_model`; none may need another input than the training data.
    monitor : str or Metric, optional
        One of `metrics`; by default the first.
    convention : str, optional
        As in `evaluate_model`.
    among : bool
        Whether there are candidates.
    """
    inputs = {"train", "candidates"} if among else {"train"}
    request = Request.parse_ranked(metrics, inputs, convention)
    if monitor is None:
        return request, request.metrics[0]
    monitored = parse_metrics(monitor, request.convention.options)
    if len(monitored) != 1 or monitored[0] not in request.metrics:
        raise InvalidMetricError(
            f"monitor is {str(monitor)!r}, which is not among the metrics; expected one of "
            f"{', '.join(request.names)} in monitor=",
            argument="monitor",
        )
    return request, monitored[0]


def best_of(
    rows: Iterable[One],
    metric: Metric,
    value_of: Callable[[One], float | None],
    min_delta: float = 0.0,
) -> One | None:
    """Return the row with the best value of a metric, the first of equal ones; None without any.

    Values that are better than the best so far by `min_delta` or less do not count.
    """
    sign = 1 if metric.definition.higher_is_better else -1
    best, most = None, -math.inf
    for row in rows:
        value = value_of(row)
        if value is not None and sign * value > most + min_delta:  # False for NaN
            best, most = row, sign * value
    return best


class Scoring(NamedTuple):
    """How the models of a job are scored.

    Attributes
    ----------
    train : LabelledMatrix or Holdout
        The training data; a split by users as a whole.
    relevance : Relevance
        The held-out items.
    request : Request
    names : dict of str to str
        The column of each metric in a table.
    candidates : Candidates or None
        Matched with the data.
    digest : str or None
        16 hexadecimal digits that identify the candidates.
    """

    train: LabelledMatrix | Holdout
    relevance: Relevance
    request: Request
    names: dict[str, str]
    candidates: Candidates | None
    digest: str | None

    @classmethod
    def of(
        cls,
        train: TrainLike,
        validation: TrainLike,
        request: Request,
        candidates: CandidatesLike | None = None,
        role: str = "validation",
    ) -> Scoring:
        """Open the data; `role` is the name of the held-out part in messages.

        Raises `InvalidDataError` if a part cannot be used, the parts do not match, or nothing is
        held out. If sampled candidates lack held-out items, because they were sampled for a
        different part.
        """
        opened = train if isinstance(train, Holdout) else open_train(train)
        seen = opened.seen if isinstance(opened, Holdout) else opened
        relevance = open_held_out(validation, role)
        names = name_of("train", train), name_of(role, validation)
        among = None if candidates is None else as_candidates(candidates)
        sides = match_split(None, seen, relevance, names, among)
        among, digest, kind = sides.candidates, None, None
        if among is not None:
            truth = sides.relevance
            is_relevant = truth.gains > 0
            n_outside = np.count_nonzero(is_relevant & ~among.hold(truth.indptr, truth.items))
            if n_outside and is_sampled(among.kind):
                raise InvalidDataError(
                    f"candidates are sampled ({among.kind}), and {n_outside} of "
                    f"{np.count_nonzero(is_relevant)} relevant items of {names[1]} are not among "
                    "them. Sample them for these items, with se.sample_negatives; for "
                    "cross_validate and tune, pass a function of the split that returns them"
                )
            kind = among.kind
            bounds = np.array([0, len(among.items)]) if among.for_all else among.indptr
            digest = digest_csr(among.shape, bounds, among.items)[:16]
        kind = JUDGED if request.judged_only else kind
        shown = {name: name_among(name, kind) for name in request.names}
        return cls(opened, relevance, request, shown, among, digest)

    @property
    def matrix(self) -> LabelledMatrix:
        """The matrix that models are trained on."""
        return self.train.train if isinstance(self.train, Holdout) else self.train

    @property
    def seen(self) -> LabelledMatrix:
        """The matrix of items that users have seen."""
        return self.train.seen if isinstance(self.train, Holdout) else self.train

    @property
    def inputs(self) -> dict[str, Any]:
        """Everything that determines the numbers, ready for a ledger."""
        return {
            "numbers": NUMBERS_VERSION,
            "train": digest_of(self.train),
            "validation": digest_of(self.relevance),
            "candidates": self.digest,
            "metrics": ", ".join(sorted(self.names.values())),
            "convention": self.request.rules,
            "seen": self.request.seen,
        }

    def evaluate(self, model: Any, execution: Execution, *, baselines: bool = False) -> Evaluation:
        """Evaluate a model as `evaluate_request` does.

        It does not warn about a model without ids: it was trained here, or the job warns once.
        """
        return evaluate_request(
            self.request,
            model,
            self.train,
            self.relevance,
            {} if self.candidates is None else {"candidates": self.candidates},
            execution,
            baselines=baselines,
            warns=False,
        )
