"""Data, checkpoints that the tests of sweeps share."""

import pytest
from sweep_cases import METRICS, N_ITEMS, N_USERS, save

import sparse_eval as se
import sparse_eval.jobs.scoring as scoring
from sparse_eval.models.evaluate_model import evaluate_request


@pytest.fixture(scope="module")
def holdout():
    clicks = se.datasets.synthetic(n_users=N_USERS, n_items=N_ITEMS, n_interactions=2500, seed=3)
    return se.split.random(clicks, fraction=0.3, seed=0)


@pytest.fixture
def folder(tmp_path):
    """Make a folder of three checkpoints."""
    made = tmp_path / "checkpoints"
    made.mkdir()
    for factors in (2, 10, 4):
        save(made / f"als-{factors}.npz", factors)
    return made


@pytest.fixture
def scored(monkeypatch):
    """Collect the models that are evaluated, as their number of factors."""
    calls = []

    def counted(request, model, *data, **options):
        calls.append(model.item_factors.shape[1])
        return evaluate_request(request, model, *data, **options)

    monkeypatch.setattr(scoring, "evaluate_request", counted)
    return calls


@pytest.fixture
def data(holdout):
    return holdout.train, holdout.validation, METRICS
