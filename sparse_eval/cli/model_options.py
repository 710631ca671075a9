"""Options of the model that a command trains, and the model that they stand for."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ..core.arguments import check_number, check_whole
from ..errors import InvalidDataError

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, JSONValue
    from ..jobs.callback import EvaluationCallback


class Family(StrEnum):
    """Models of implicit that are trained."""

    als = "als"
    bpr = "bpr"
    lmf = "lmf"
    cosine = "cosine"
    tfidf = "tfidf"
    bm25 = "bm25"
    item_item = "item-item"


#: What each family is called, and its options with their defaults: but for factors those of
#: implicit, for ALS those of `train_als`.
_FAMILIES: dict[Family, tuple[str, dict[str, float]]] = {
    Family.als: ("ALS", {"factors": 64, "alpha": 40.0, "regularization": 0.1, "iterations": 15}),
    Family.bpr: (
        "BPR",
        {"factors": 64, "learning_rate": 0.01, "regularization": 0.01, "iterations": 100},
    ),
    Family.lmf: (
        "LMF",
        {"factors": 64, "learning_rate": 1.0, "regularization": 0.6, "iterations": 30},
    ),
    Family.cosine: ("cosine", {"neighbors": 20}),
    Family.tfidf: ("TF-IDF", {"neighbors": 20}),
    Family.bm25: ("BM25", {"neighbors": 20, "k1": 1.2, "b": 0.75}),
    Family.item_item: ("item-item", {"neighbors": 20}),
}


class Hyperparameters(NamedTuple):
    """Which model is trained, and how."""

    model: Annotated[
        Family,
        typer.Option(
            help="The model. bpr and lmf are trained on one thread, so that a seed gives the same "
            "model each time."
        ),
    ] = Family.als
    factors: Annotated[
        int | None,
        typer.Option(help="als, bpr, lmf: number of latent factors.", show_default="64"),
    ] = None
    alpha: Annotated[
        float | None, typer.Option(help="als: weight of an interaction.", show_default="40")
    ] = None
    regularization: Annotated[
        float | None,
        typer.Option(help="als, bpr, lmf: regularization.", show_default="0.1; bpr 0.01; lmf 0.6"),
    ] = None
    iterations: Annotated[
        int | None,
        typer.Option(
            help="als, bpr, lmf: number of iterations.", show_default="15; bpr 100; lmf 30"
        ),
    ] = None
    learning_rate: Annotated[
        float | None, typer.Option(help="bpr, lmf: learning rate.", show_default="bpr 0.01; lmf 1")
    ] = None
    neighbors: Annotated[
        int | None,
        typer.Option(
            help="cosine, tfidf, bm25, item-item: similar items that each keeps.",
            show_default="20",
        ),
    ] = None
    k1: Annotated[
        float | None,
        typer.Option(help="bm25: how soon more of a user count less.", show_default="1.2"),
    ] = None
    b: Annotated[
        float | None,
        typer.Option(help="bm25: how much popularity counts, 0 to 1.", show_default="0.75"),
    ] = None

    def settings(self) -> dict[str, Any]:
        """Return the values of the options that the model has.

        Raises
        ------
        InvalidDataError
            If it has not an option that is given, or a value is out of its range.
        """
        _, defaults = _FAMILIES[self.model]
        given = self._asdict()
        del given["model"]
        given = {name: value for name, value in given.items() if value is not None}
        for name, value in given.items():
            if name not in defaults:
                has = ", ".join(map(_flag, defaults))
                raise InvalidDataError(
                    f"{_flag(name)} does not apply to --model {self.model}, which has {has}"
                )
            if name in ("factors", "iterations", "neighbors"):
                check_whole(_flag(name), value, 1)
            else:
                check_number(_flag(name), value, 0, open_end=name in ("alpha", "learning_rate"))
            if name == "b" and value > 1:
                raise InvalidDataError(f"--b: expected a number from 0 to 1, found {value}")
        return defaults | given

    def check_new_users(self, source: str) -> None:
        """Raise `InvalidDataError` if the model cannot fold in users, whom `source` holds out."""
        if self.model in (Family.bpr, Family.lmf):
            raise InvalidDataError(
                f"{source} holds out users that the model is not trained on, and --model "
                f"{self.model} cannot fold them in; use als or a model of neighbors"
            )

    def describe(self) -> str:
        """Return the model in a few words: ``ALS, 64 factors, 15 iterations``."""
        settings = self.settings()
        sizes = [
            f"{settings[name]} {name}"
            for name in ("factors", "iterations", "neighbors")
            if name in settings
        ]
        return ", ".join([_FAMILIES[self.model][0], *sizes])

    def about(self) -> "dict[str, JSONValue]":
        """Return what is saved with a result about the model."""
        return {"class": _FAMILIES[self.model][0], **self.settings()}

    def train(
        self,
        matrix: "CSRMatrix",
        seed: int,
        progress: bool | None,
        callback: "EvaluationCallback | None" = None,
    ) -> Any:
        """Return the trained model of implicit, which has no common type."""
        from ..jobs.train import train_als, train_model

        settings = self.settings()
        if self.model is Family.als:
            return train_als(matrix, **settings, seed=seed, progress=progress, callback=callback)
        return train_model(
            _make(self.model, settings, seed), matrix, progress=progress, callback=callback
        )


def _make(family: Family, settings: dict[str, Any], seed: int) -> Any:
    """Return a model of implicit, other than ALS, before it is fitted."""
    if "iterations" in settings:
        from implicit.cpu.bpr import BayesianPersonalizedRanking
        from implicit.cpu.lmf import LogisticMatrixFactorization

        kind = BayesianPersonalizedRanking if family is Family.bpr else LogisticMatrixFactorization
        return kind(**settings, random_state=seed, num_threads=1)  # several race each other
    from implicit import nearest_neighbours as neighbours

    size = settings["neighbors"]
    if family is Family.bm25:
        return neighbours.BM25Recommender(size, K1=settings["k1"], B=settings["b"])
    kinds = {
        Family.cosine: neighbours.CosineRecommender,
        Family.tfidf: neighbours.TFIDFRecommender,
        Family.item_item: neighbours.ItemItemRecommender,
    }
    return kinds[family](size)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
