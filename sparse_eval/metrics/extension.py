"""Metrics of other packages, and of one's own."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from ..errors import InvalidMetricError
from .registry import Choice, Definition, Number, register

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Formula = TypeVar("Formula", bound=Callable[..., Any])

__all__ = ["register_metric"]

_NEEDS = ("train", "item_groups", "item_vectors")
_USES = ("hits", "candidates", "total_gain", "exp")


def register_metric(
    name: str,
    description: str,
    *,
    text: str = "",
    over: Literal["statistics", "lists"] = "statistics",
    per_user: bool = True,
    options: Iterable[Choice | Number] = (),
    cutoff: Literal["optional", "required", "none"] = "optional",
    lower: float = 0.0,
    upper: float = math.inf,
    higher_is_better: bool = True,
    needs: Iterable[str] = (),
    uses: Iterable[str] = (),
    linear: bool = False,
    source: str = "",
) -> Callable[[Formula], Formula]:
    """Make a function a metric, by name, wherever metrics are named.

    A package that announces its module under the entry point group ``sparse_eval.metrics`` has it
    imported when a name is not known or metrics are listed, so its metrics work on the command
    line too.

    Parameters
    ----------
    name : str
        Lower case letters, digits and underscores, the first a letter.
    description, text : str
        What it says and its formula, in a line each.
    over : {"statistics", "lists"}
        Whether the function is given `sparse_eval.metrics.Statistics` or
        `sparse_eval.metrics.Lists`, of a block of users.
    per_user : bool
        Whether it returns a float64 array with a value for each user (NaN leaves the user out),
        or one number for all users together, which metrics over lists may.
    options : sequence of Choice or Number
        From `sparse_eval.metrics`; passed to the function by name.
    cutoff : {"optional", "required", "none"}
        Whether ``@k`` may, must or must not be given. Where it may be left out, ``k`` is then
        `sparse_eval.metrics.FULL_LIST`, larger than any list: use ``list_length`` for its length.
    lower, upper : float
        The range of its values.
    higher_is_better : bool
        Which way it is better, when models are compared by it or trained until it is best.
    needs : sequence of {"train", "item_groups", "item_vectors"}
        Inputs of `evaluate` without which it cannot be computed.
    uses : sequence of {"hits", "candidates", "total_gain", "exp"}
        What of `Statistics` is made only where it is used: the ranks of all hits ("hits"), for
        its methods and ``rank_sum``, ``pairs``, ``largest_gain``; ``candidates``; ``all_gain``
        ("total_gain"); ``dcg_exp`` and ``idcg_exp`` ("exp").
    linear : bool
        Whether the formula is linear in the statistics, so that applied to their expectations it
        gives its own under a random ranking; otherwise `summary` estimates that.
    source : str
        Where the formula comes from.

    Returns
    -------
    callable
        A decorator that returns the function as it is.

    Raises
    ------
    InvalidMetricError
        If the name is taken or none, or an input or attribute is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> import sparse_eval as se
    >>> @se.register_metric("half_hits", "whether half of the list are hits", cutoff="required")
    ... def half_hits(s):
    ...     return (s.hits >= s.k / 2).astype(np.float64)
    >>> from scipy.sparse import csr_matrix
    >>> lists = se.Rankings.from_topk([[0, 1], [2, 3]])
    >>> se.evaluate(lists, csr_matrix([[1, 0, 0, 0], [1, 0, 0, 0]]), "half_hits@2")["half_hits@2"]
    0.5
    """
    options, needs, uses = tuple(options), tuple(needs), tuple(uses)
    if not isinstance(name, str) or not re.fullmatch("[a-z][a-z0-9_]*", name):
        raise InvalidMetricError(
            f"{name!r} is no name of a metric; expected lower case letters, digits and _, the "
            "first a letter"
        )
    for given, known, what in ((needs, _NEEDS, "input"), (uses, _USES, "attribute")):
        for word in given:
            if word not in known:
                raise InvalidMetricError(
                    f"metric {name!r}: there is no {what} {word!r}; expected {', '.join(known)}"
                )
    if over not in ("statistics", "lists") or cutoff not in ("optional", "required", "none"):
        raise InvalidMetricError(
            f"metric {name!r}: over is {over!r} and cutoff {cutoff!r}; expected 'statistics' or "
            "'lists', and 'optional', 'required' or 'none'"
        )
    if not per_user and over != "lists":
        raise InvalidMetricError(
            f"metric {name!r}: only a metric over lists can be one number for all users"
        )

    for option in options:
        _check_option(name, option)
    names = [option.name for option in options]
    if len(set(names)) < len(names):
        raise InvalidMetricError(f"metric {name!r} has an option twice; name each differently")

    def add(formula: Formula) -> Formula:
        if not callable(formula):
            raise InvalidMetricError(f"metric {name!r}: {formula!r} is no function")
        register(
            Definition(
                name,
                formula,
                text,
                description,
                over=over,
                per_user=per_user,
                options=options,
                cutoff=cutoff,
                lower=lower,
                upper=upper,
                higher_is_better=higher_is_better,
                needs=needs,
                uses=uses,
                closed_form=lambda options: linear,
                of_largest=lambda options: "hits" in uses,  # it may read it
                source=source,
            )
        )
        return formula

    return add


def _check_option(metric: str, option: Any) -> None:
    if not isinstance(option, Choice | Number):
        raise InvalidMetricError(f"metric {metric!r}: {option!r} is neither a Choice nor a Number")
    words = option.values if isinstance(option, Choice) else (option.default,)
    for word in (option.name, *words):
        if not isinstance(word, str) or not re.fullmatch(r"[a-z0-9_.+-]+", word):
            raise InvalidMetricError(
                f"metric {metric!r}, option {option.name!r}: {word!r} cannot be written; expected "
                "lower case letters, digits and any of _.+-"
            )
    if isinstance(option, Number) and re.match("[0-9.]", option.default):
        option = replace(option, default="")  # a default that is a number has to be in bounds
        option.canonical(words[0])
    elif not words:
        raise InvalidMetricError(f"metric {metric!r}, option {option.name!r} has no values")
