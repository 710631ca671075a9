"""Options of models, and the commands that split data and train: demo, run, split, train."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from ..core.arguments import check_number, check_whole
from ..core.files import make_folder, make_folder_of, remove
from ..errors import InvalidDataError, shown
from .loading import Events, Splitting, check_inputs_are_kept, describe, files_of_split, is_split
from .measuring import Measuring, score_model
from .options import Evaluating, Execution, Output, Progress, Rare, Seed, option, typed
from .printing import Printing, step
from .terminal import leaves, note

if TYPE_CHECKING:
    from ..core.types import CSRMatrix
    from ..datasets.split import Holdout
    from ..jobs.train import EvaluationCallback


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
        for flag in typed(
            *(name for name in vars(self) if name not in {*defaults, "model", "seed"})
        ):
            raise InvalidDataError(
                f"{flag} does not apply to --model {self.model}, which has "
                f"{', '.join(map(_flag, defaults))}"
            )
        values = {name: getattr(self, name) for name in defaults}
        given = {name: value for name, value in values.items() if value is not None}
        for name, value in given.items():
            flag = _flag(name)
            if name in _WHOLE:
                check_whole(flag, value, 1)
            else:
                check_number(flag, value, 0, open_end=name in ("alpha", "learning_rate"))
        return defaults | given

    def check_new_users(self, source: str) -> None:
        """Raise if `source` holds out users and the model cannot fold them in."""
        if self.model in ("bpr", "lmf"):
            raise InvalidDataError(
                f"{source} holds out users that the model is not trained on, and --model "
                f"{self.model} cannot fold them in; use als or a model of neighbors"
            )

    def about(self, data: str) -> dict[str, Any]:
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


def demo(
    *,
    n_users: Annotated[int, option("--users")] = 50_000,
    n_items: Annotated[int, option("--items")] = 51_277,
    model: Hyperparameters,
    measuring: Measuring,
    execution: Evaluating,
    out: Output[Path] = Path("sparse_eval_demo"),
    printing: Printing,
) -> None:
    """Run every step on synthetic clicks: generate, split, train, recommend, score.

    Example: sparse-eval demo --users 5000 --out demo

    Parameters
    ----------
    n_users
        Number of synthetic users.
    n_items
        Number of synthetic items.
    out
        Folder for the results.
    """
    from .. import datasets
    from ..datasets import split

    protocol = measuring.of_models()
    model.settings()  # raises before data are made
    make_folder(out)
    leaves(lambda: _left_in(out))
    with step("generate clicks") as done:
        interactions = datasets.synthetic(n_users, n_items, seed=model.seed)
        done(repr(interactions))
    with step("hold out a fifth of each user's") as done:
        holdout = split.random(interactions, fraction=0.2, seed=model.seed)
        _save_split(holdout, out)
        done(describe(holdout))
    trained = model.train(holdout.train, execution.bars, out / "model.npz")
    ev = score_model(trained, holdout, protocol, execution, lists=True)
    printing.evaluation(ev, out, **model.about("synthetic"))
    note(f"left in {shown(out)}: split/, model.npz, per_user.csv, summary.json")


def run(
    input: Path,
    validation: Path | None = None,
    *,
    splitting: Splitting,
    model: Hyperparameters,
    measuring: Measuring,
    execution: Evaluating,
    out: Output[Path | None] = None,
    printing: Printing,
) -> None:
    """Split, train a model, recommend and score.

    Example: sparse-eval run clicks.csv --at 2019-11-14 --out results

    Parameters
    ----------
    input
        Interactions, or the training part of a ready-made split.
    validation
        The validation part of a ready-made split.
    out
        Folder for summary.json and per_user.csv; created if missing.
    """
    protocol = measuring.of_models()
    model.settings()  # raises before data are read
    if splitting.how == "users":
        model.check_new_users("--method users")
    if out is not None:
        outputs = [*files_of_split(out / "split"), out / "model.npz"]
        check_inputs_are_kept([input, validation], outputs)
        make_folder(out)
        leaves(lambda: _left_in(out))
    if validation is None:
        holdout = splitting.split(splitting.events(input), model.seed)
    elif splitting.is_given:
        raise InvalidDataError(
            "--method and its options split one file, but two files are a split already"
        )
    else:
        holdout = splitting.known(splitting.parts(input, validation, splitting.times)[1])
    if out is not None:
        _save_split(holdout, out)
    checkpoint = None if out is None else out / "model.npz"
    trained = model.train(holdout.train, execution.bars, checkpoint)
    ev = score_model(trained, holdout, protocol, execution, lists=out is not None)
    printing.evaluation(ev, out, **model.about(str(input)))


def split(
    input: Path, *, out: Output[Path], splitting: Splitting, seed: Seed = 0, execution: Execution
) -> None:
    """Hold out a part of each user's interactions, what came after a point in time, or users.

    Example: sparse-eval split clicks.csv --at 2019-11-14 --out split

    Parameters
    ----------
    input
        Interactions.
    out
        Folder for train.npz, validation.npz, labels.npz and other parts.
    """
    check_inputs_are_kept([input], files_of_split(out))
    holdout = splitting.split(splitting.events(input), seed)
    holdout.save(out)
    more = [f"{name}.npz" for name in ("test", "fold_in") if getattr(holdout, name) is not None]
    files = ", ".join(["train.npz", "validation.npz", *more, "labels.npz"])
    note(f"left in {shown(out)}: {files}")


def train(
    input: Path,
    *,
    out: Output[Path],
    validation: Path | None = None,
    loading: Events,
    model: Hyperparameters,
    metrics: Annotated[list[str] | None, option("--metric", "-m")] = None,
    patience: int | None = None,
    checkpoints: Output[Path | None] = None,
    keep_best: bool = False,
    resume: bool = False,
    execution: Progress,
) -> None:
    """Train a model of implicit and save it.

    Example: sparse-eval train split --out als.npz

    Parameters
    ----------
    input
        A folder that `split` wrote, or interactions.
    out
        The checkpoint to write (.npz).
    validation
        The validation part, if the input is the training part of a ready-made split.
    metrics
        Evaluate each iteration; repeatable. The model is saved of the best one, by the first
        metric. [ndcg@10 with any of these options]
    patience
        Stop after this many iterations without improvement. [never]
    checkpoints
        Folder for a checkpoint of each iteration; created if missing.
    keep_best
        Keep only the best checkpoint there, best.npz.
    resume
        Continue a training that was stopped, after its last checkpoint there.
    """
    if out.suffix != ".npz" or out.is_dir():
        raise InvalidDataError(f"--out is {str(out)!r}; expected a file name that ends in .npz")
    settings = model.settings()  # raises before data are read
    wanted = typed("validation", "metrics", "patience", "checkpoints", "keep_best", "resume")
    if wanted and "iterations" not in settings:
        raise InvalidDataError(
            f"{wanted[0]} is for models that are trained in iterations, and {model.model} is "
            "not; leave it out, and evaluate with: sparse-eval score"
        )
    if (keep_best or resume) and checkpoints is None:
        needed = "--resume continues from" if resume else "--keep-best keeps"
        raise InvalidDataError(f"{needed} a checkpoint; name its folder with --checkpoints")
    protocol = Measuring(metrics or ["ndcg@10"], None, False, False).of_models()
    check_inputs_are_kept([input, validation], [out])
    make_folder_of(out)
    if is_split(input):
        if typed("validation"):
            raise InvalidDataError(f"{input} has its own validation part; leave out --validation")
        validation = None
    callback = None
    if is_split(input) or validation is not None:
        holdout = loading.parts(input, validation)[1] if validation else loading.saved(input)
        matrix = holdout.train
        is_wanted = wanted or metrics or patience is not None or checkpoints is not None
        if is_wanted and "iterations" in settings:
            from ..jobs.train import EvaluationCallback

            if holdout.fold_in is not None:
                model.check_new_users(str(input))
            keep: Literal["best", "all"] = "best" if keep_best else "all"
            callback = EvaluationCallback(
                holdout,
                protocol,
                # Without patience too, the best factors are kept.
                patience=settings["iterations"] if patience is None else patience,
                out=checkpoints,
                keep=keep,
                resume=resume,
            )
    elif wanted:
        raise InvalidDataError(f"{wanted[0]} needs --validation, or a folder that `split` wrote")
    else:
        matrix = loading.read(input, **loading.conditions()).matrix()

    def left() -> str | None:
        if checkpoints is None or not any(checkpoints.glob("[!.]*.npz")):
            return None
        score = f"score {checkpoints}" + (f" --split {input}" if input.is_dir() else "")
        return f"checkpoints so far are in {checkpoints}; compare them with: sparse-eval {score}"

    leaves(left)
    model.train(matrix, execution.bars, out, callback)


def _left_in(out: Path) -> str | None:
    """Describe the work that `demo` and `run` leave in their folder."""
    if not (out / "split" / "labels.npz").exists():
        return None
    if (out / "model.npz").exists():
        score = f"score {out / 'model.npz'} --split {out / 'split'}"
        return f"{out} has the split and the model; go on with: sparse-eval {score}"
    return f"{out} has the split; go on with: sparse-eval train {out / 'split'}"


def _save_split(holdout: Holdout, out: Path) -> None:
    """Save a split, and remove the files of an earlier run.

    They are kept if there is no room for the split.
    """
    from ..results.saving import remove_saved

    with holdout.saving(out / "split"):
        remove_saved(out)
        remove(out / "model.npz")
