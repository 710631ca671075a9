"""Data and learning curves that the tests of the callback share."""

import pytest
from callback_cases import FAMILIES, ITERATIONS, METRICS, N_ITEMS, N_USERS, trained
from threadpoolctl import threadpool_limits

import sparse_eval as se


@pytest.fixture(scope="module", autouse=True)
def one_blas_thread():
    with threadpool_limits(1, "blas"):  # implicit warns if there are more
        yield


@pytest.fixture(scope="module")
def holdout():
    clicks = se.datasets.synthetic(n_users=N_USERS, n_items=N_ITEMS, n_interactions=1200, seed=3)
    return se.split.random(clicks, fraction=0.3, seed=0)


@pytest.fixture(params=FAMILIES)
def family(request):
    return request.param


@pytest.fixture(scope="module")
def curves(holdout):
    """Return the metrics after each number of iterations, each from a separate training."""
    return {
        family: [
            se.evaluate_model(trained(family, holdout, n), holdout, METRICS).mean()
            for n in range(1, ITERATIONS + 1)
        ]
        for family in FAMILIES
    }
