"""A split that several tests of models share."""

import pytest

import sparse_eval as se


@pytest.fixture(scope="session")
def holdout():
    clicks = se.datasets.synthetic(n_users=150, n_items=80, n_interactions=2500, seed=3)
    return se.split.random(clicks, fraction=0.3, seed=0)
