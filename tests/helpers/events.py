"""A small table of events, and the rows of loaded interactions."""

CSV = "user,item,value,at\nzoë,7,3,30\nbob,5,0,20\nzoë,5,1.5,10\n"


def rows(interactions):
    """Return the decoded events in their order."""
    return list(interactions.to_frame().itertuples(index=False, name=None))
