"""The import, and the task of the suite `lists` that is the first call, from raw arrays."""

MODULE = "sparse_eval"
FIRST_CALL = "ndcg@10, whole call"
PREPARED = False  # whether the library's own objects exist already
