"""A small table of events, and the rows of loaded interactions."""

from __future__ import annotations

from sparse_eval.datasets import Interactions

CSV = "user,item,value,at\nanna,7,3,30\nbob,5,0,20\nanna,5,1.5,10\n"


def rows(interactions: Interactions) -> list[tuple[object, ...]]:
    """Return the decoded events in their order."""
    return list(interactions.to_frame().itertuples(index=False, name=None))
