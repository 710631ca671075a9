"""Engines for more users than one process can evaluate: one module for each."""
