"""Import RecTools; no first call is timed."""

MODULE = "rectools.metrics"
