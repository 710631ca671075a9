"""Utilities of the whole package: checks of arrays, exact sums, hashing, threads and files."""
