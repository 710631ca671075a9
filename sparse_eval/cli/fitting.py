"""Options of models, and the commands that train: demo, run, split, train, tune."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

import typer

from ..core.arguments import check_number
from ..core.atomic_files import make_folder, make_folder_of
from ..core.formatting import records
from ..errors import InvalidDataError, shown
from .evaluating import Candidates, Measuring, score_model
from .loading import (
    Filtering,
    Splitting,
    check_inputs_are_kept,
    check_is_fresh,
    files_of_split,
    is_split,
    with_test,
)
from .options import (
    Evaluating,
    Metrics,
    Output,
    Printing,
    Progress,
    Rare,
    ResultFolder,
    Running,
    Seed,
    check_applies,
    counted,
    option,
    step,
    typed,
)
from .terminal import echo, note, tell

if TYPE_CHECKING:
    from ..core.types import CSRMatrix
    from ..datasets.split import Holdout
    from ..jobs.train import EvaluationCallback
    from ..metrics.request import Protocol

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
    factors: Annotated[int | None, option(min=1)] = None
    alpha: Rare[Annotated[float | None, option(min=0)]] = None
    regularization: Rare[Annotated[float | None, option(min=0)]] = None
    iterations: Annotated[int | None, option(min=1)] = None
    learning_rate: Rare[Annotated[float | None, option(min=0)]] = None
    neighbors: Rare[Annotated[int | None, option(min=1)]] = None
    k1: Rare[Annotated[float | None, option(min=0)]] = None
    b: Rare[Annotated[float | None, option(min=0)]] = None
    seed: Seed = 0

    def settings(self) -> dict[str, Any]:
        """Return the values of the options that the model has, or raise if it lacks a given one."""
        defaults = _FAMILIES[self.model][2]
        names = {*vars(self)} - {"model", "seed"}
        check_applies(names, defaults, f"--model {self.model}")
        given = {name: getattr(self, name) for name in defaults}
        if self.learning_rate is not None:
            check_number("learning_rate", self.learning_rate, 0, open_end=True)
        return {name: defaults[name] if value is None else value for name, value in given.items()}

    def about(self) -> dict[str, Any]:
        """Return the model and the seed of a result, which are saved with it."""
        return {"model": {"class": _FAMILIES[self.model][0], **self.settings()}, "seed": self.seed}

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

        name, place, _ = _FAMILIES[self.model]
        settings = self.settings()
        with step("train") as note:
            if self.model == "als":
                trained = train_als(
                    matrix, **settings, seed=self.seed, progress=progress, callback=callback
                )
            else:
                module, _, kind = place.rpartition(".")
                options = {_NAMES.get(name, name): value for name, value in settings.items()}
                if "iterations" in settings:  # several threads would race each other
                    options |= {"random_state": self.seed, "num_threads": 1}
                made = getattr(import_module(f"implicit.{module}"), kind)(**options)
                trained = train_model(made, matrix, progress=progress, callback=callback)
            sizes = ("factors", "iterations", "neighbors")
            note(", ".join([name, *(f"{settings[n]} {n}" for n in sizes if n in settings)]))
            if callback is not None:
                note(callback.describe())
        if out is not None:
            save_model(trained, out)
        return trained


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

    protocol = _begin(model, measuring, out)
    with step("generate clicks") as done:
        interactions = datasets.synthetic(n_users, n_items, seed=model.seed)
        done(repr(interactions))
    holdout = Splitting().split(interactions, model.seed, "hold out a fifth of each user's pairs")
    _end(holdout, {"data": "synthetic"}, protocol, model, execution, out, printing)
    note(f"left in {shown(out)}: split/, model.npz, summary.json and its Parquet files")


def run(
    input: Path,
    validation: Path | None = None,
    *,
    splitting: Splitting,
    model: Hyperparameters,
    measuring: Measuring,
    execution: Evaluating,
    out: ResultFolder = None,
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
    """
    protocol = _begin(model, measuring, out, input, validation)
    if validation is None:
        holdout = splitting.split(splitting.read_wanted(input), model.seed)
        origin = {"data": str(input), "split": splitting.described()}
    elif splitting.is_given:
        raise InvalidDataError(
            "--method and its options split one file, but two files are a split already"
        )
    else:
        holdout = splitting.known(splitting.parts(input, validation)[1])
        origin = {"data": f"train {input}, validation {validation}"}
    _end(holdout, origin, protocol, model, execution, out, printing)


def _begin(
    model: Hyperparameters, measuring: Measuring, out: Path | None, *inputs: Path | None
) -> Protocol:
    """Return the metrics; raise for what can be wrong before data are read or made."""
    protocol = measuring.of_models()
    model.settings()
    if out is not None:
        check_inputs_are_kept(inputs, [*files_of_split(out / "split"), out / "model.npz"])
        make_folder(out)
    return protocol


def _end(
    holdout: Holdout,
    origin: dict[str, Any],
    protocol: Protocol,
    model: Hyperparameters,
    execution: Evaluating,
    out: Path | None,
    printing: Printing,
) -> None:
    """Save a split, train, score, and print the result; `origin` has its data and split."""
    from ..results.saving import remove_saved

    checkpoint = None if out is None else out / "model.npz"
    if out is not None and checkpoint is not None:
        with holdout.saving(out / "split"):  # earlier files are kept if there is no room for it
            remove_saved(out)
            checkpoint.unlink(missing_ok=True)
    trained = model.train(holdout.train, execution.bars, checkpoint)
    ev = score_model(trained, holdout, protocol, execution, lists=out is not None)
    printing.evaluation(ev, out, **origin, **model.about())


def split(
    input: Path,
    *,
    out: Output[Path],
    splitting: Splitting,
    fail_if_stale: Rare[Annotated[str | None, option(metavar="DURATION")]] = None,
    seed: Seed = 0,
    execution: Running,
) -> None:
    """Hold out a part of each user's interactions, what came after a point in time, or users.

    Example: sparse-eval split clicks.csv --at 2019-11-14 --out split

    Parameters
    ----------
    input
        Interactions.
    out
        Folder for train.npz, validation.npz, labels.npz and other parts.
    fail_if_stale
        End with an error if the last event is further in the past, as 36h.
    """
    check_inputs_are_kept([input], files_of_split(out))
    interactions = splitting.read_wanted(input)
    if fail_if_stale is not None:
        check_is_fresh(interactions, fail_if_stale)
    holdout = splitting.split(interactions, seed)
    holdout.save(out)
    files = ", ".join(path.name for path in files_of_split(out) if path.exists())
    note(f"left in {shown(out)}: {files}")


def train(
    input: Path,
    *,
    out: Output[Path],
    validation: Path | None = None,
    loading: Filtering,
    model: Hyperparameters,
    metrics: Metrics = None,
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
    settings = model.settings()
    wanted = typed("validation", "metrics", "patience", "checkpoints", "keep_best", "resume")
    if wanted and "iterations" not in settings:
        raise InvalidDataError(
            f"{wanted[0]} is for models that are trained in iterations, and {model.model} is "
            "not; leave it out, and evaluate with: sparse-eval score"
        )
    if (keep_best or resume) and checkpoints is None:
        raise InvalidDataError(
            f"--{'resume' if resume else 'keep-best'} needs checkpoints; name their folder with "
            "--checkpoints"
        )
    protocol = Measuring(metrics or ["ndcg@10"]).of_models()
    check_inputs_are_kept([input, validation], [out])
    make_folder_of(out)
    callback = holdout = None
    if is_split(input):
        if typed("validation"):
            raise InvalidDataError(f"{input} has its own validation part; leave out --validation")
        holdout = loading.saved(input)
    elif validation is not None:
        holdout = loading.parts(input, validation)[1]
    elif wanted:
        raise InvalidDataError(f"{wanted[0]} needs --validation, or a folder that `split` wrote")
    evaluates = wanted or metrics or patience is not None or checkpoints is not None
    if holdout is not None and evaluates and "iterations" in settings:
        from ..jobs.train import EvaluationCallback

        callback = EvaluationCallback(
            holdout,
            protocol,
            # Without patience too, the best factors are kept.
            patience=settings["iterations"] if patience is None else patience,
            out=checkpoints,
            checkpoints="best" if keep_best else "all",
            resume=resume,
        )

    matrix = loading.read_wanted(input).matrix() if holdout is None else holdout.train
    model.train(matrix, execution.bars, out, callback)


@dataclass(frozen=True)
class Space:
    """The values that are tried.

    Parameters
    ----------
    factors
        Latent factors: a number (64), several (32,64,128), or a range (16:256).
    alpha
        Weight of an interaction, likewise.
    regularization
        Regularization, likewise.
    iterations
        Most iterations, likewise.
    """

    factors: str = "64"
    alpha: str = "40"
    regularization: str = "0.1"
    iterations: str = "15"


@dataclass(frozen=True)
class MeasuringTrials(Measuring):
    """The metrics of a search.

    Parameters
    ----------
    metrics
        Metrics; repeatable. [ndcg@10,recall@10,map@10]
    """

    usual: ClassVar[str] = "ndcg@10,recall@10,map@10"


def tune(
    input: Path,
    test: Path | None = None,
    *,
    out: Output[Path],
    splitting: Splitting,
    space: Space,
    n_trials: Annotated[int | None, option("--trials")] = None,
    patience: int | None = None,
    monitor: Rare[str | None] = None,
    candidates: Candidates = None,
    seed: Seed = 0,
    measuring: MeasuringTrials,
    execution: Progress,
    printing: Printing,
) -> None:
    """Search ALS's hyperparameters on a validation part, and test the best on a third part.

    Example: sparse-eval tune clicks.csv --factors 32,64,128 --out tuned

    Parameters
    ----------
    input
        Interactions; or a folder that `split` wrote, whose test part, or otherwise validation part,
        is the test; or the training part of a ready-made split.
    out
        Folder for the trials, the best model and its test; an interrupted command resumes there.
    test
        The test part of a ready-made split.
    n_trials
        Trials in all. [the grid of all values]
    patience
        Stop a trial after this many iterations without improvement.
    monitor
        The metric that decides which iteration and trial is best. [the first]
    """
    from ..jobs.scoring import parse_monitored
    from ..jobs.tune import read_space
    from ..jobs.tune import tune as search

    protocol, among = measuring.protocol(), candidates is not None
    parse_monitored(protocol, monitor, among=among)  # raises before data are read
    values, _ = read_space(asdict(space), n_trials)
    make_folder(out)
    parts = _three_parts(input, test, splitting, seed, candidates)
    with step("tune") as done:
        tuning = search(
            parts,
            protocol,
            space=values,
            n_trials=n_trials,
            patience=patience,
            monitor=monitor,
            candidates=splitting.matrix(candidates),
            seed=seed,
            out=out,
            progress=execution.bars,
        )
        done(counted(len(tuning.trials), "trial"))
    rows, ev = records(tuning.trials), tuning.test
    result = {"best": tuning.best, "test": None if ev is None else ev.to_dict()}
    printing.table(tuning.trials, [*rows, result], {"trials": rows, **result})
    if printing.for_people and ev is not None:
        echo()
        printing.evaluation(ev, None)
    n_failed = int((tuning.trials["status"] == "failed").sum())
    if n_failed:
        tell(f"{n_failed:,} of {counted(len(tuning.trials), 'trial')} failed", "warning")
    if tuning.best is None:
        raise typer.Exit(1)


def _three_parts(
    input: Path, test: Path | None, splitting: Splitting, seed: int, candidates: Path | None
) -> Holdout:
    """Return a split in three; the test part may be given."""
    if test is None and not is_split(input):
        return splitting.split(splitting.read_wanted(input), seed, three_way=True)
    if typed("test"):
        raise InvalidDataError("--test-at cuts one file, but the test part is given already")
    if test is not None:
        rest: Any
        rest, whole = splitting.parts(input, test)
    else:
        whole = splitting.saved(input, candidates)
        rest = whole.train
    if whole.test is None:
        if whole.fold_in is not None:
            raise InvalidDataError(
                f"{input} holds out users, and has none for the test; give the interactions that "
                "it was made of, with --method users"
            )
        if splitting.method == "users":
            raise InvalidDataError(
                "--method users holds out users for validation, but the given test part has users "
                "of train; choose another method, or give the interactions before the split"
            )
        part = splitting.split(rest, seed, "hold out the validation part")
        whole = with_test(part, whole)
    elif splitting.is_given:
        raise InvalidDataError(
            f"{input} is split in three already; leave --method and its options out"
        )
    return splitting.known(whole)
