"""Options of the model that a command trains, and the model that they stand for."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..core.arguments import check_number, check_whole
from ..errors import InvalidDataError
from .options import Rare, Seed
from .printing import step

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, JSONValue
    from ..jobs.callback import EvaluationCallback

#: Models of implicit that are trained.
Family: TypeAlias = Literal["als", "bpr", "lmf", "cosine", "tfidf", "bm25", "item-item"]

#: The display name of each family, its class in implicit, and its options with the defaults of
#: implicit (of `train_als` for ALS), but for factors.
_FAMILIES: dict[Family, tuple[str, str, dict[str, float]]] = {
    "als": ("ALS", "", {"factors": 64, "alpha": 40.0, "regularization": 0.1, "iterations": 15}),
    "bpr": (
        "BPR",
        "cpu.bpr.BayesianPersonalizedRanking",
        {"factors": 64, "learning_rate": 0.01, "regularization": 0.01, "iterations": 100},
    ),
    "lmf": (
        "LMF",
        "cpu.lmf.LogisticMatrixFactorization",
        {"factors": 64, "learning_rate": 1.0, "regularization": 0.6, "iterations": 30},
    ),
    "cosine": ("cosine", "nearest_neighbours.CosineRecommender", {"neighbors": 20}),
    "tfidf": ("TF-IDF", "nearest_neighbours.TFIDFRecommender", {"neighbors": 20}),
    "bm25": ("BM25", "nearest_neighbours.BM25Recommender", {"neighbors": 20, "k1": 1.2, "b": 0.75}),
    "item-item": ("item-item", "nearest_neighbours.ItemItemRecommender", {"neighbors": 20}),
}

#: Options by their names in implicit.
_NAMES = {"neighbors": "K", "k1": "K1", "b": "B"}

_WHOLE = ("factors", "iterations", "neighbors")


@dataclass(frozen=True)
class Hyperparameters:
    """Which model is trained, and how.

    Parameters
    ----------
    model
        The model. bpr and lmf are trained on one thread, so that a seed gives the same model each
        time.
    factors
        als, bpr, lmf: number of latent factors. [64]
    alpha
        als: weight of an interaction. [40]
    regularization
        als, bpr, lmf: regularization. [0.1; bpr 0.01; lmf 0.6]
    iterations
        als, bpr, lmf: number of iterations. [15; bpr 100; lmf 30]
    learning_rate
        bpr, lmf: learning rate. [bpr 0.01; lmf 1]
    neighbors
        cosine, tfidf, bm25, item-item: similar items that each keeps. [20]
    k1
        bm25: how soon more of a user count less. [1.2]
    b
        bm25: how much popularity counts, 0 to 1. [0.75]
    """

    model: Family = "als"
    factors: int | None = None
    alpha: Rare[float | None] = None
    regularization: Rare[float | None] = None
    iterations: int | None = None
    learning_rate: Rare[float | None] = None
    neighbors: Rare[int | None] = None
    k1: Rare[float | None] = None
    b: Rare[float | None] = None
    seed: Seed = 0

    def settings(self) -> dict[str, Any]:
        """Return the values of the options that the model has.

        Raises
        ------
        InvalidDataError
            If it has not an option that is given, or a value is out of its range.
        """
        defaults = _FAMILIES[self.model][2]
        given = {name: value for name, value in asdict(self).items() if value is not None}
        del given["model"], given["seed"]
        for name, value in given.items():
            flag = _flag(name)
            if name not in defaults:
                raise InvalidDataError(
                    f"{flag} does not apply to --model {self.model}, which has "
                    f"{', '.join(map(_flag, defaults))}"
                )
            if name in _WHOLE:
                check_whole(flag, value, 1)
            else:
                check_number(flag, value, 0, open_end=name in ("alpha", "learning_rate"))
            if name == "b" and value > 1:
                raise InvalidDataError(f"--b: expected a number from 0 to 1, found {value}")
        return defaults | given

    def check_new_users(self, source: str) -> None:
        """Raise if `source` holds out users and the model cannot fold them in."""
        if self.model in ("bpr", "lmf"):
            raise InvalidDataError(
                f"{source} holds out users that the model is not trained on, and --model "
                f"{self.model} cannot fold them in; use als or a model of neighbors"
            )

    def about(self, data: str) -> dict[str, JSONValue]:
        """Return the origin of a result, which is saved with it."""
        model = {"class": _FAMILIES[self.model][0], **self.settings()}
        return {"data": data, "model": model, "seed": self.seed}

    def train(
        self,
        matrix: CSRMatrix,
        progress: bool | None,
        out: Path | None,
        callback: EvaluationCallback | None = None,
    ) -> Any:
        """Return a trained model of implicit, which has no common type, and save it to `out`."""
        from ..jobs.train import train_als, train_model
        from ..models.checkpoints import save_model

        settings = self.settings()
        options: dict[str, Any] = {"progress": progress, "callback": callback}
        with step("train") as note:
            if self.model == "als":
                trained = train_als(matrix, **settings, seed=self.seed, **options)
            else:
                trained = train_model(_make(self.model, settings, self.seed), matrix, **options)
            sizes = [f"{settings[name]} {name}" for name in _WHOLE if name in settings]
            note(", ".join([_FAMILIES[self.model][0], *sizes]))
            if callback is not None:
                note(callback.describe())
        if out is not None:
            save_model(trained, out)
        return trained


def _make(family: Family, settings: dict[str, Any], seed: int) -> Any:
    """Return a model of implicit, other than ALS, before it is fitted."""
    module, _, name = _FAMILIES[family][1].rpartition(".")
    options = {_NAMES.get(name, name): value for name, value in settings.items()}
    if "iterations" in settings:  # several threads would race each other
        options |= {"random_state": seed, "num_threads": 1}
    return getattr(import_module(f"implicit.{module}"), name)(**options)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
