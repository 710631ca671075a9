"""Inputs of an evaluation: ranked lists, relevant items, candidates and data about items."""
