"""Propensities: probabilities that relevant items were observed, and weights that correct for them.

Popular items are observed more often than they are relevant. If a relevant item is observed with
propensity p, a hit with weight 1 / p also counts for the relevant items that were not observed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ..errors import InvalidDataError, InvalidMetricError
from .registry import Choice, Number

if TYPE_CHECKING:
    from ..core.types import Floats
    from ..inputs.side_data import SideData
    from .registry import Arguments


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
        fault = "a and b are parameters of propensity=jain, not of propensity=given"
    elif weights == "none" and gamma != "given":
        fault = "gamma is a parameter of weights=snips and weights=ips, not of weights=none"
    elif weights != "none" and arguments.get("gain") == "exp":
        fault = "weights are defined for gain=linear and gain=binary"
    elif weights != "none" and arguments.get("among") == "list":
        fault = "weights are defined for among=candidates"
    if fault is not None:
        raise InvalidMetricError(f"{metric}: {fault}; leave out one of both", metric=metric)


def propensities(weights: Weights, side_data: SideData) -> Floats:
    """Return the propensity of each item, above 0.

    Raises
    ------
    InvalidDataError
        If the training data have too few users, or none.
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
                "train is empty, so that no item is popular; give items=se.ItemData(propensity=…)",
                argument="train",
            )
        # An item without users counts as having one, as in novelty.
        powers: Floats = (np.maximum(counts, 1) / most) ** gamma
        return powers
    a, b = weights.parameters
    if training.n_active < 3:
        raise InvalidDataError(
            f"train has {training.n_active} users with items; the propensities of Jain et al. are "
            "defined for 3 or more",
            argument="train",
        )
    factor = (math.log(training.n_active) - 1) * (b + 1) ** a
    inverse: Floats = 1 / (1 + factor * (counts + b) ** -a)
    return inverse
