"""The command that searches hyperparameters: tune."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

import typer

from ..core.files import make_folder
from ..core.formatting import records
from ..errors import InvalidDataError
from .loading import Splitting, is_split, with_test
from .measuring import Candidates, Measuring
from .options import Output, Progress, Rare, Seed, option, typed
from .printing import Printing, counted, step
from .terminal import echo, leaves, tell

if TYPE_CHECKING:
    from ..core.types import CSRMatrix
    from ..datasets import Interactions
    from ..datasets.split import Holdout
    from ..jobs.tune import Tuning


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
        Folder for the study, the best model and its test; an interrupted command resumes there.
    test
        The test part of a ready-made split.
    n_trials
        Trials in all. [the grid of all values]
    patience
        Stop a trial after this many iterations without improvement.
    monitor
        The metric that decides which iteration and trial is best. [the first]
    """
    from ..jobs.tune import STUDY, Search
    from ..models.inputs import training_part

    search = Search(
        measuring.protocol(),
        asdict(space),
        n_trials=n_trials,
        patience=patience,
        monitor=monitor,
        among=candidates is not None,
        seed=seed,
    )
    make_folder(out)
    kept = f"finished trials are in {out / STUDY}; repeat the command to continue"
    leaves(lambda: kept if (out / STUDY).exists() else None)
    parts = _three_parts(input, test, splitting, seed, candidates)
    among = splitting.matrix(candidates)
    with step("tune") as done:
        train = training_part(parts)
        try:
            tuning = search.run(
                train, parts.validation, parts.test, (among, among), out, execution.bars
            )
        except KeyboardInterrupt:
            if search.study is not None:
                _print_tuning(search.so_far(), printing)
            raise
        done(counted(len(tuning.trials), "trial"))
    _print_tuning(tuning, printing)
    n_failed = int((tuning.trials["status"] == "failed").sum())
    if n_failed:
        tell(f"{n_failed:,} of {counted(len(tuning.trials), 'trial')} failed", "warning")
    if tuning.best is None:
        raise typer.Exit(1)


def _three_parts(
    input: Path, test: Path | None, splitting: Splitting, seed: int, candidates: Path | None
) -> Holdout:
    """Return the split in three; the test part may be given."""
    if test is None and not is_split(input):
        purpose = "hold out the validation and test parts"
        return splitting.split(splitting.events(input), seed, purpose, three_way=True)
    if typed("test"):
        raise InvalidDataError("--test-at cuts one file, but the test part is given already")
    rest: Interactions | CSRMatrix
    if test is not None:
        rest, whole = splitting.parts(input, test, splitting.times)
    else:
        whole = splitting.saved(input, candidates)
        rest = whole.train
        if whole.test is None and whole.fold_in is not None:
            raise InvalidDataError(
                f"{input} holds out users, and has none for the test; give the interactions that "
                "it was made of, with --method users"
            )
    if whole.test is None:
        part = splitting.split(rest, seed, "hold out the validation part")
        whole = with_test(part, whole)
    elif splitting.is_given:
        raise InvalidDataError(
            f"{input} is split in three already; leave --method and its options out"
        )
    return splitting.known(whole)


def _print_tuning(tuning: Tuning, printing: Printing) -> None:
    """Print the trials and, apart from them, the test."""
    test = tuning.test
    if printing.for_people:
        echo(str(tuning) if printing.printed == "table" else tuning.to_markdown())
        return
    rows = records(tuning.trials)
    result = {"best": tuning.best, "test": None if test is None else test.to_dict()}
    printing.table(tuning.trials, [*rows, result], {"trials": rows, **result})
    if printing.printed == "csv" and test is not None:
        echo()
        printing.table(tuning.scores())
