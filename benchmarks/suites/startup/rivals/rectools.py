"""The import; no first call is timed."""

MODULE = "rectools.metrics"
FIRST_CALL = None
PREPARED = False
