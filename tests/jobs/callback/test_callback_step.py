"""Training loops of your own: their steps, how they end, and how they continue."""

import pytest
from callback_cases import ITERATIONS, METRICS, bits, evaluating, make, stop_of, trained
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError, UnsupportedModelError
from sparse_eval.models.checkpoints import read_checkpoint

pytestmark = pytest.mark.long


def loop(callback, holdout, n=ITERATIONS, resume=False):
    """Train ALS epoch by epoch; return the number of epochs that were trained now."""
    done, factors = callback.begin() if resume else (0, None)
    model = make("als", 1)
    if factors is not None:
        model.user_factors, model.item_factors = factors
    for epoch in range(done, n):
        model.fit(holdout.train.csr, show_progress=False)
        if callback.step((model.user_factors, model.item_factors), epoch):
            return epoch + 1 - done
    return n - done


def test_a_loop_has_the_numbers_of_a_fit(holdout, tmp_path, curves):
    done, best = stop_of([row["ndcg@10"] for row in curves["als"]], 3)
    callback = evaluating(holdout, patience=3, out=tmp_path)
    for _ in range(2):  # the second loop starts anew
        assert loop(callback, holdout) == done
        history = callback.history
        assert history[METRICS].to_dict("records") == curves["als"][:done]
        assert (history[["train_seconds", "evaluate_seconds"]] > 0).all(axis=None)
        assert callback.best_iteration == best
        assert tuple(map(bytes, callback.best_factors)) == bits(trained("als", holdout, best))
    assert len(list(tmp_path.iterdir())) == done
    kept = read_checkpoint(tmp_path / f"iteration_{best:04d}.npz").model
    assert bits(kept) == bits(trained("als", holdout, best))
    assert kept.item_ids.tolist() == holdout.items.tolist()
    rarely = evaluating(holdout, every=5)
    assert loop(rarely, holdout) == ITERATIONS
    assert rarely.history.index.tolist() == [5, 10]
    assert rarely.best_factors is None


@pytest.mark.parametrize("keep", ["all", "best"])
def test_a_loop_continues(holdout, tmp_path, keep):
    options = {"patience": 3, "checkpoints": keep, "out": tmp_path, "resume": True}
    whole = evaluating(holdout, patience=3)
    n = loop(whole, holdout)
    assert loop(evaluating(holdout, **options), holdout, 4, resume=True) == 4
    kept = 4 if keep == "all" else int(whole.history["ndcg@10"][:4].idxmax())
    callback = evaluating(holdout, **options)
    assert loop(callback, holdout, resume=True) == n - kept
    assert callback.history[METRICS].equals(whole.history[METRICS])
    again = evaluating(holdout, **options)
    assert loop(again, holdout, resume=True) == (1 if keep == "all" else 3)
    assert again.best_iteration == whole.best_iteration
    with raises(InvalidFileError):
        evaluating(holdout, "mrr@5", **options).begin()


def test_refuses_steps(holdout, tmp_path):
    resuming = evaluating(holdout, out=tmp_path, resume=True)
    factors = trained("als", holdout, 1)
    with raises(InvalidDataError):
        resuming.step(factors, 0)
    resuming.begin()
    with raises(UnsupportedModelError):
        resuming.step(se.baselines.ease(holdout.train), 0)
    with raises(InvalidDataError):
        evaluating(holdout).step((factors.user_factors, factors.item_factors[1:]), 0)
    with raises(InvalidDataError, argument="epoch"):
        evaluating(holdout).step(factors, -1)
