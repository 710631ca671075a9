"""`Plan`: how a metric is computed, and how its relevant items are weighted.

Popular items are observed more often than they are relevant. If a relevant item is observed with
propensity p, a hit with weight 1 / p also counts for the relevant items that were not observed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..core import elementary
from ..errors import InvalidDataError, InvalidMetricError
from .registry import Choice, Number

if TYPE_CHECKING:
    from ..core.types import Floats
    from ..inputs.data import SideData
    from .conventions import Convention
    from .grammar import Metric
    from .registry import Arguments, Definition


YANG = "weights=: Yang, Cui, Xuan, Wang et al., 2018, RecSys, doi:10.1145/3240323.3240355"

WEIGHTS = Choice(
    "weights",
    ("none", "ips", "snips"),
    "a hit counts 1, or 1 / p, p = the item's propensity, or 1 / p over its mean of the user's "
    "relevant items",
)

GAMMA = Number(
    "gamma", "given", 0, math.inf, "p as given to evaluate, or (users of i / most users)^gamma"
)

#: The options of metrics whose hits can be weighted.
WEIGHTED = (WEIGHTS, GAMMA)


class Weights(NamedTuple):
    """How the relevant items of each user are weighted.

    Attributes
    ----------
    kind : {"ips", "snips"}
        By 1 / p, or by 1 / p divided by its mean over the user's relevant items.
    graded : bool
        Whether weights are multiplied by gains instead of replacing them.
    ideal : bool
        Whether the ideal list is weighted too.
    model : {"given", "power", "jain"}
        The source of the propensities p.
    parameters : tuple of float
        γ of "power", a and b of "jain".
    """

    kind: Literal["ips", "snips"]
    graded: bool
    ideal: bool
    model: Literal["given", "power", "jain"]
    parameters: tuple[float, ...] = ()

    @property
    def needs(self) -> str:
        """The input of `evaluate` from which the propensities are computed."""
        return "propensity" if self.model == "given" else "train"


def weights_of(arguments: Arguments) -> Weights | None:
    """Return the weights of a metric's relevant items, None if they are not weighted."""
    if {"propensity", "a", "b"} <= arguments.keys():
        is_given = arguments["propensity"] == "given"
        parameters = () if is_given else (float(arguments["a"]), float(arguments["b"]))
        return Weights("ips", False, True, "given" if is_given else "jain", parameters)
    kind = arguments.get("weights", "none")
    gamma = arguments.get("gamma")
    if kind not in ("ips", "snips") or gamma is None:
        return None
    return Weights(
        "ips" if kind == "ips" else "snips",
        graded=arguments.get("gain") == "linear",
        ideal=False,
        model="given" if gamma == "given" else "power",
        parameters=() if gamma == "given" else (float(gamma),),
    )


def check_weights(metric: object, arguments: Arguments) -> None:
    """Raise `InvalidMetricError` if options cannot be combined."""
    weights, gamma = arguments.get("weights", "none"), arguments.get("gamma", "given")
    fault = None
    if arguments.get("propensity") == "given" and (arguments["a"], arguments["b"]) != (0.55, 1.5):
        fault = "a and b need propensity=jain. Remove them, or use propensity=jain"
    elif weights == "none" and gamma != "given":
        fault = "gamma needs weights=snips or weights=ips. Remove it, or use one of these"
    elif weights != "none" and arguments.get("gain") == "exp":
        fault = "weights need gain=linear or gain=binary. Remove them, or use one of these"
    elif weights != "none" and arguments.get("among") == "list":
        fault = "weights need among=candidates. Remove one of the options"
    if fault is not None:
        raise InvalidMetricError(f"{metric}: {fault}", metric=metric)


def propensities(weights: Weights, side_data: SideData) -> Floats:
    """Return the propensity of each item, above 0.

    Raises `InvalidDataError` if the training data have too few users, or none.
    """
    if weights.model == "given":
        assert side_data.propensity is not None  # noqa: S101 - the metric is refused without it
        return side_data.propensity
    training = side_data.training
    assert training is not None  # noqa: S101 - likewise
    counts = training.item_counts
    if weights.model == "power":
        (gamma,) = weights.parameters
        most = int(counts.max(initial=0))
        if most == 0:
            raise InvalidDataError(
                "train is empty, so no item is popular; pass item_data=se.ItemData(propensity=…)",
                argument="train",
            )
        # An item without users counts as having one, as in novelty.
        return elementary.power(np.maximum(counts, 1) / most, gamma)
    a, b = weights.parameters
    if training.n_active < 3:
        raise InvalidDataError(
            f"train has {training.n_active} users with items; the propensities of Jain et al. are "
            "defined for 3 or more",
            argument="train",
        )
    factor = (elementary.log(training.n_active) - 1) * elementary.power(b + 1, a)
    inverse: Floats = 1 / (1 + factor * elementary.power(counts + b, -a))
    return inverse


#: Averages that give one number for all users, a function of a ratio of sums.
OF_SUMS = frozenset(("micro", "geometric"))


class View(NamedTuple):
    """The items that a metric counts as relevant.

    Attributes
    ----------
    items : str
        Which of the relevant items count: "all", or a selection by `Aligned.of_items`.
    weights : Weights or None
        The weights of these items, if they are not the gains.
    judged : bool
        Whether items that were judged as not relevant are hits too.
    """

    items: str = "all"
    weights: Weights | None = None
    judged: bool = False


@dataclass(frozen=True)
class Plan:
    """A metric, its definition and the arguments of its formula."""

    metric: Metric
    definition: Definition
    arguments: dict[str, Any]

    def compute(self, data: Any) -> Any:
        """Apply its formula to `Lists`."""
        return self.definition.formula.function(data, **self.arguments)

    @property
    def is_micro(self) -> bool:
        """Whether numerators and denominators are summed over users before they are divided."""
        return self.definition.formula.is_ratio or self.arguments.get("average") in OF_SUMS

    def number_of(self, ratio: float) -> float:
        """Return the metric of all users, given the ratio of their sums."""
        is_geometric = self.arguments.get("average") == "geometric"
        return float(elementary.exp(ratio)) if is_geometric else ratio

    @cached_property
    def for_all_users(self) -> bool:
        """Whether its formula has a value for users without relevant items too."""
        return self.definition.formula.for_all_users or self.arguments.get("average") == "geometric"

    @property
    def items(self) -> str:
        """Which of the relevant items count: "all", or a selection by `Aligned.of_items`."""
        return str(self.arguments.get("items", "all")) if self.definition.formula.by_item else "all"

    @property
    def weights(self) -> Weights | None:
        """How the relevant items are weighted, or None."""
        return weights_of(self.arguments)

    @property
    def uses(self) -> frozenset[str]:
        """The optional attributes of `Statistics` that its formula reads."""
        uses = frozenset(self.definition.uses)
        # For hits that are not listed, only their number is needed, unless they are weighted.
        return uses | {"total_gain"} if self.weights and "candidates" in uses else uses

    @property
    def uses_judged(self) -> bool:
        """Whether it distinguishes items judged as not relevant from unjudged items."""
        return "judged" in self.definition.uses

    @property
    def view(self) -> View:
        """The items that the metric counts as relevant."""
        return View(self.items, self.weights, self.uses_judged)

    @property
    def is_exponential(self) -> bool:
        """Whether it needs the sums of 2^g − 1."""
        return self.arguments.get("gain") == "exp" or "exp" in self.definition.uses

    @cached_property
    def is_swept(self) -> bool:
        """Whether its formula is applied to the statistics of the sweep, not to whole lists."""
        return self.definition.over == "statistics"

    @cached_property
    def per_user(self) -> bool:
        """Whether there is a value for each user."""
        return self.definition.per_user and not self.is_micro

    @property
    def upper(self) -> float:
        """The largest possible value."""
        upper = self.definition.range[1]
        return upper(self.arguments) if callable(upper) else upper

    @property
    def inputs(self) -> frozenset[str]:
        """The inputs of `evaluate` without which it cannot be computed."""
        chosen = {
            option.needs[value]
            for option in self.definition.options
            if (value := self.arguments[option.name]) in option.needs
        }
        weights = self.weights
        beside = () if weights is None else (weights.needs,)
        return frozenset(chosen.union(self.definition.needs, beside))

    def exceptions(self, convention: Convention) -> tuple[bool, bool]:
        """Return whether every list counts, and whether users without a list count 0.

        A convention makes both exceptions for some metrics.
        """
        over_lists = not self.is_swept and self.metric.name != "user_coverage"
        return (
            convention.exceptions.lists_of_all and over_lists,
            self.metric.name in convention.exceptions.without_list_zero,
        )
