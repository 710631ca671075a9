"""Inputs of any kind become `Rankings`, `Relevance` and side data with the same numbers."""
