"""Exact ranking from the factors of a model."""
