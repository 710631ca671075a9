"""Training, sweeps, cross-validation, tuning, and the records of their results."""
