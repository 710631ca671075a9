"""The import, and the task of the suite `lists` that is the first call."""

MODULE = "ranx"
FIRST_CALL = "ndcg@10"
PREPARED = True
