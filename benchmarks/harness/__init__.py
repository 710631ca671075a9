"""Shared by all suites: environments of rivals, workers, turns, and the form of the results."""
