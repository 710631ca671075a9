import pytest
from exact import exact_model

import sparse_eval as se


@pytest.fixture(scope="session")
def data():
    """Return a model, and what it was trained and is evaluated on."""
    clicks = se.datasets.synthetic(n_users=900, n_items=200, seed=0)
    holdout = se.split.random(clicks, seed=0)
    # Without ids, which matrices on disk do not have either.
    train, held = (part.csr for part in (holdout.train, holdout.validation))
    return exact_model(train), train, held
