"""What version 0.1 called otherwise: errors that show the new name."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
Result = TypeVar("Result")

#: What is given instead of names of the package.
NAMES = {
    "full_ranks": "se.ranks(model, held_out)",
    "held_out_ranks": "se.ranks(model, held_out, k)",
}

#: What is given instead of arguments.
ARGUMENTS = {
    "corrected": "candidates=negatives.corrected('unbiased')",
    "item_groups": "items=se.ItemData(groups=…)",
    "item_vectors": "items=se.ItemData(vectors=…)",
    "judged_only": "se.Protocol(metrics, judged_only=True) as metrics",
    "no_relevant": "se.Protocol(metrics, no_relevant='zero') as metrics",
    "per_user": "keep='totals'",
    "propensity": "items=se.ItemData(propensity=…)",
    "seen": "se.Protocol(metrics, filter_seen=False) as metrics",
    "user_rows": "users=rows, which are row numbers where there are no ids",
    "via": "se.Recommender(model) for its own lists, or keep='lists' for whole ones",
    "without_list": "se.Protocol(metrics, without_list='zero') as metrics",
}


def removed(*names: str, **instead: str) -> Callable[[Callable[P, Result]], Callable[P, Result]]:
    """Make a function raise a `TypeError` that shows what is given instead of an old argument.

    Parameters
    ----------
    *names : str
        Arguments that `ARGUMENTS` has.
    **instead : str
        Other arguments, and what is given instead of them.
    """
    table = {name: ARGUMENTS[name] for name in names} | instead

    def decorate(function: Callable[P, Result]) -> Callable[P, Result]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> Result:
            names = [str(name) for name in kwargs]
            if len(args) > 1 and getattr(args[1], "ndim", False):  # factors, in two arguments
                names.append("item_factors")
            for name in names:
                if name in table:
                    raise TypeError(
                        f"{function.__name__}() has no argument {name!r}; give {table[name]}"
                    )
            return function(*args, **kwargs)

        return call

    return decorate
