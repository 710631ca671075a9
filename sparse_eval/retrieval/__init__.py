"""Exact top-k lists and held-out ranks from the factors of users and items."""
