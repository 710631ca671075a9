"""The callback in `train_als`, its progress bar, and models on a device."""

import numpy as np
from callback_cases import ITERATIONS, METRICS, bits, evaluating, make, stop_of, trained
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.models.checkpoints import read_checkpoint
from sparse_eval.models.opening import as_model


def test_train_als_with_a_callback(holdout):
    settings = {"factors": 16, "regularization": 0.001, "seed": 4}
    plain = [se.train_als(holdout.train, iterations=n, **settings) for n in range(1, 13)]
    curve = [se.evaluate_model(model, holdout, METRICS).mean() for model in plain]
    callback = evaluating(holdout)
    model = se.train_als(holdout.train, iterations=12, callback=callback, **settings)
    assert bits(model) == bits(plain[-1])
    assert callback.history[METRICS].to_dict("records") == curve
    done, best = stop_of([row["ndcg@10"] for row in curve], 2)
    callback = evaluating(holdout, patience=2)
    model = se.train_als(holdout.train, iterations=12, callback=callback, **settings)
    assert len(callback.history) == done
    assert bits(model) == bits(plain[best - 1])
    weighted = holdout.train.csr.copy()  # is trained, not the matrix of the callback
    weighted.data = np.log1p(weighted.data + np.arange(len(weighted.data)) % 7)
    model = se.train_als(weighted, factors=4, iterations=3, callback=evaluating(holdout))
    assert bits(model) == bits(se.train_als(weighted, factors=4, iterations=3))


def test_the_progress_bar_shows_the_monitored_metric(holdout, capsys):
    callback = evaluating(holdout, patience=4)
    options = {"factors": 16, "regularization": 0.001, "iterations": 100, "progress": True}
    se.train_als(holdout.train, callback=callback, **options)
    shown = capsys.readouterr().err
    value = f"{callback.history['ndcg@10'].iloc[-1]:.4f}"
    assert f"{len(callback.history)}/100" in shown
    assert f"ndcg@10={value}, best after={callback.best_iteration}" in shown
    assert "recommend" not in shown


class DeviceMatrix:
    """Made from an array, but without its indexing and copying."""

    def __init__(self, array):
        assert isinstance(array, np.ndarray)
        self.array = array.copy()


class DeviceModel:
    """Is trained in iterations, has device matrices, and can be moved to the CPU."""

    def __init__(self):
        self.iterations = ITERATIONS
        self.user_factors = self.item_factors = None
        self._item_norms_host = "of other factors"

    def to_cpu(self):
        model = make("bpr", 1)
        if self.item_factors is not None:
            model.user_factors = self.user_factors.array
            model.item_factors = self.item_factors.array
        return model

    def fit(self, train, show_progress=True, callback=None):
        def after(*received):
            self.user_factors = DeviceMatrix(whole.user_factors)
            self.item_factors = DeviceMatrix(whole.item_factors)
            callback(*received)

        whole = make("bpr")
        whole.fit(train, show_progress=show_progress, callback=after)


def test_a_model_on_a_device(holdout, tmp_path, curves):
    done, best = stop_of([row["ndcg@10"] for row in curves["bpr"]], 3)
    callback = evaluating(holdout, patience=3, out=tmp_path)
    model = callback.fit(DeviceModel())
    assert callback.history[METRICS].to_dict("records") == curves["bpr"][:done]
    assert isinstance(model.item_factors, DeviceMatrix)
    assert model._item_norms_host is None
    assert bits(model.to_cpu()) == bits(trained("bpr", holdout, best))
    assert as_model(model).item_ids.equals(holdout.items)
    model.item_factors.array[0, 0] += 1  # trained again
    assert as_model(model).item_ids is None
    model.item_factors.array[0, 0] -= 1
    saved = read_checkpoint(tmp_path / f"iteration_{done:04d}.npz").model
    assert bits(saved) == bits(trained("bpr", holdout, done))
    fewer = se.EvaluationCallback(
        holdout.train.csr[:, :30], holdout.validation.csr[:, :30], "ndcg@10"
    )
    with raises(InvalidDataError):  # its size is that of the model on the CPU
        fewer.on(model)
