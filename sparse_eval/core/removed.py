"""Errors for names and arguments of version 0.1 that show the new ones."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
Result = TypeVar("Result")

#: The new calls for removed names of the package.
NAMES = {
    "full_ranks": "se.ranks(model, held_out)",
    "held_out_ranks": "se.ranks(model, held_out, k)",
}

#: The new spellings of removed arguments, and those of arguments of other libraries; {!r} stands
#: for the value given.
ARGUMENTS = {
    "K": "the cut-off with the metric, such as 'ndcg@{!r}'",
    "filter_already_liked_items": "se.Protocol(metrics, filter_seen={!r}) as metrics",
    "k": "the cut-off with the metric, such as 'ndcg@{!r}'",
    "topk": "the cut-off with the metric, such as 'ndcg@{!r}'",
    "cutoff": "the cut-off with the metric, such as 'ndcg@{!r}'",
    "threshold": "se.Relevance.from_csr(matrix, threshold={!r}) or from_frame as validation",
    "corrected": "candidates=negatives.corrected({!r})",
    "item_groups": "items=se.ItemData(groups=…)",
    "item_vectors": "items=se.ItemData(vectors=…)",
    "judged_only": "se.Protocol(metrics, judged_only={!r}) as metrics",
    "no_relevant": "se.Protocol(metrics, no_relevant={!r}) as metrics",
    "per_user": "keep='totals' for per_user=False, or nothing for True",
    "propensity": "items=se.ItemData(propensity=…)",
    "seen": "se.Protocol(metrics, filter_seen=False) as metrics for seen='allow'",
    "user_rows": "users=rows, which are row numbers where there are no ids",
    "via": "se.Recommender(model) for its own lists, or keep='lists' for whole ones",
    "without_list": "se.Protocol(metrics, without_list={!r}) as metrics",
}


def removed(*names: str, **instead: str) -> Callable[[Callable[P, Result]], Callable[P, Result]]:
    """Make a function raise a `TypeError` for a removed argument that shows the new one.

    Parameters
    ----------
    *names : str
        Removed arguments in `ARGUMENTS`.
    **instead : str
        Other removed arguments, with their new spellings.
    """
    table = {name: ARGUMENTS[name] for name in names} | instead

    def decorate(function: Callable[P, Result]) -> Callable[P, Result]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> Result:
            old = [name for name in table if name in kwargs]
            if "item_factors" in table and len(args) > 1 and hasattr(args[1], "ndim"):
                old.append("item_factors")  # by position
            if old:
                called = function.__qualname__.removesuffix(".__init__")
                new = {table[name].replace("{!r}", repr(kwargs.get(name))): 0 for name in old}
                raise TypeError(
                    f"{called}() has no argument {', '.join(old)}; give {', '.join(new)}"
                )
            return function(*args, **kwargs)

        return call

    return decorate
