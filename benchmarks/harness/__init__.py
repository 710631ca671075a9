"""What the suites share: environments of rivals, workers, turns, and the form of the results."""
