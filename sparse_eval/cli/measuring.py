"""Options of metrics and their rules, and the evaluation of one model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from .options import Evaluating, Rare, option
from .printing import counted, step

if TYPE_CHECKING:
    from ..datasets.split import Holdout
    from ..evaluation.run import Keep
    from ..metrics.request import Protocol
    from ..results import Evaluation


@dataclass(frozen=True)
class Measuring:
    """The metrics and their rules.

    Parameters
    ----------
    metrics
        Metrics; repeatable. [the usual ones at 5, 10 and 20]
    convention
        Count as another library, as trec_eval.
    allow_seen
        What users have seen may be recommended again, and is a candidate.
    judged_only
        Leave items that the validation data do not store, as gain or zero, out of the lists.
    """

    #: The metrics if none are named.
    usual: ClassVar[str] = (
        "ndcg@{5,10,20},precision@{5,10,20},recall@{5,10,20},hit_rate@{5,10,20},map@{5,10,20},"
        "mrr@20"
    )

    metrics: Annotated[list[str] | None, option("--metric", "-m")] = None
    convention: str | None = None
    allow_seen: Rare[bool] = False
    judged_only: Rare[bool] = False

    def protocol(self, *, averaged: bool = False, **rules: Any) -> Protocol:
        """Return the metrics with their rules, or raise if one is misspelt.

        Without names, these are the usual metrics that the convention supports, and with `averaged`
        of these the metrics that are averaged over the orders of equal scores.
        """
        from ..metrics import convention_named, parse_metrics
        from ..metrics.request import Protocol

        convention = convention_named(self.convention)
        usual = [
            m.name if m.name in convention.uncut else str(m)
            for m in parse_metrics(self.usual)
            if m.name not in convention.unlike
            and (not averaged or m.definition.averages_ties(convention.arguments(m)))
        ]
        return Protocol(
            self.metrics or usual,
            convention=self.convention,
            filter_seen=not self.allow_seen,
            judged_only=self.judged_only,
            **rules,
        )

    def of_models(self) -> Protocol:
        """Return the protocol of the lists of models, or raise before hours of training."""
        from ..metrics.request import Request

        protocol = self.protocol()
        Request.parse_ranked(protocol)
        return protocol


Candidates: TypeAlias = Annotated[
    Path | None,
    option(
        help="The candidates of each user, one user and item in each row, in a file of the same "
        "kind as the training data. [all items]",
        hidden=True,
    ),
]


def score_model(
    model: Any,
    holdout: Holdout,
    protocol: Protocol,
    execution: Evaluating,
    *,
    lists: bool,
    scheduler: str | None = None,
    candidates: Any = None,
) -> Evaluation:
    """Recommend and score, in this process or on the workers of a Dask scheduler.

    In this process, add the popularity ranking and, with `lists`, as for an evaluation to be saved,
    keep whole lists where ranks would do, up to the largest cut-off.
    """
    from ..evaluation.run import Execution
    from ..metrics.request import Request
    from ..models.evaluate import evaluate_request
    from ..models.inputs import training_part

    inputs = {} if candidates is None else {"candidates": candidates}
    keeps_lists = lists and scheduler is None and execution.memory is None
    keep: Keep = "lists" if keeps_lists else "values"
    with step("recommend and score") as note:
        ev = evaluate_request(
            Request.parse_ranked(protocol, {"train", *inputs}),
            model,
            training_part(holdout),
            holdout.validation,
            inputs,
            Execution(keep, execution.memory, scheduler, progress=execution.bars),
            baselines=scheduler is None,
        )
        note(counted(ev.n_users, "user"))
    return ev
