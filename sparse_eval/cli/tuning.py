"""The command that searches hyperparameters: tune."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..core.files import make_folder
from ..core.formatting import records
from ..errors import InvalidDataError
from . import options
from .echo import echo
from .loading import (
    holdout_of,
    is_split,
    load,
    load_candidates,
    load_parts,
    refuse_filters,
    times_for,
)
from .printing import counted, print_json, print_lines, print_table, step, warnings_in_a_line
from .splitting import only_known, split_by, with_test

if TYPE_CHECKING:
    from ..core.types import CSRMatrix
    from ..datasets import Interactions
    from ..datasets.split import Holdout
    from ..jobs.tuning import Tuning


def tune(
    input: Annotated[
        Path,
        typer.Argument(
            help="Interactions; or a folder that `split` wrote, with its test part or, without "
            "one, its validation part as the test part; or the training part of a ready-made split."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for the study (study.jsonl), the best model (model.npz) and its test; an "
            "interrupted command resumes from it."
        ),
    ],
    test: Annotated[
        Path | None, typer.Argument(help="The test part of a ready-made split.")
    ] = None,
    *,
    loading: options.Loading,
    filtering: options.Filtering,
    splitting: options.Splitting,
    test_at: options.TestAt = None,
    factors: Annotated[
        str,
        typer.Option(
            help="ALS: latent factors: a number (64), several (32,64,128), or a range (16:256)."
        ),
    ] = "64",
    alpha: Annotated[str, typer.Option(help="ALS: weight of an interaction, likewise.")] = "40",
    regularization: Annotated[str, typer.Option(help="ALS: regularization, likewise.")] = "0.1",
    iterations: Annotated[
        str, typer.Option(help="ALS: maximum number of iterations, likewise.")
    ] = "15",
    trials: Annotated[
        int | None,
        typer.Option(
            help="Number of trials; more than before are added.",
            show_default="the grid of all values",
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(help="Stop a trial after this many iterations without improvement."),
    ] = None,
    monitor: Annotated[
        str | None,
        typer.Option(
            help="The metric that decides which iteration and trial is best.",
            show_default="the first",
        ),
    ] = None,
    candidates: options.Candidates = None,
    allow_seen: options.AllowSeen = False,
    judged_only: options.JudgedOnly = False,
    seed: options.Seed = 0,
    metric: options.Metrics = ["ndcg@10,recall@10,map@10"],
    progress: options.Progress = None,
    format: options.Printed = options.Format.table,
) -> None:
    """Search ALS's hyperparameters on a validation part, and test the best on a third part."""
    from ..jobs.tune import Search
    from ..metrics.protocol import Protocol
    from ..models.inputs import training_part

    search = Search(
        Protocol(metric, filter_seen=not allow_seen, judged_only=judged_only),
        {
            "factors": factors,
            "alpha": alpha,
            "regularization": regularization,
            "iterations": iterations,
        },
        n_trials=trials,
        patience=patience,
        monitor=monitor,
        among=candidates is not None,
        seed=seed,
    )
    make_folder(out)
    parts = _three_parts(input, test, loading, filtering, splitting, test_at, seed)
    among = load_candidates(candidates, loading)
    with step("tune") as note, warnings_in_a_line():
        train = training_part(parts)
        try:
            tuning = search.run(train, parts.validation, parts.test, (among, among), out, progress)
        except KeyboardInterrupt:
            if search.study is not None:
                _print_tuning(search.so_far(), format)
            raise
        note(counted(len(tuning.trials), "trial"))
    _print_tuning(tuning, format)
    n_failed = int((tuning.trials["status"] == "failed").sum())
    if n_failed:
        echo(f"{n_failed:,} of {counted(len(tuning.trials), 'trial')} failed", err=True)
    if tuning.best is None:
        raise typer.Exit(1)


def _three_parts(
    input: Path,
    test: Path | None,
    loading: options.Loading,
    filtering: options.Filtering,
    splitting: options.Splitting,
    test_at: str | None,
    seed: int,
) -> Holdout:
    """Return the split in three, of which the test part may be given."""
    if test is None and not is_split(input):
        interactions = load(input, loading, filtering, times_for(splitting))
        purpose = "hold out the validation and test parts"
        return split_by(interactions, splitting, seed, purpose, three_way=True, test_at=test_at)
    refuse_filters(filtering)
    if test_at is not None:
        raise InvalidDataError("--test-at cuts one file, but the test part is given already")
    rest: Interactions | CSRMatrix
    if test is not None:
        parts = load_parts(input, test, loading, times_for(splitting))
        rest, whole = parts[0], holdout_of(*parts)
    else:
        from ..datasets.split import Holdout

        whole = Holdout.load(input)
        rest = whole.train
        if whole.test is None and whole.fold_in is not None:
            raise InvalidDataError(
                f"{input} holds out users, and has none for the test; give the interactions that "
                "it was made of, with --method users"
            )
    if whole.test is None:
        part = split_by(rest, splitting, seed, "hold out the validation part")
        whole = with_test(part, whole)
    elif splitting._replace(timestamp=None, only_known=False) != options.Splitting():
        raise InvalidDataError(
            f"{input} is split in three already; leave --method and its options out"
        )
    return only_known(whole) if splitting.only_known else whole


def _print_tuning(tuning: Tuning, format: options.Format) -> None:
    """Print the trials and, apart from them, the test."""
    trials, test = tuning.trials, tuning.test
    if format in (options.Format.json, options.Format.jsonl):
        rows = records(trials)
        result = {"best": tuning.best, "test": None if test is None else test.to_dict()}
        if format is options.Format.jsonl:
            print_lines([*rows, result])
        else:
            print_json({"trials": rows, **result})
    elif format is options.Format.csv:
        print_table(trials, format)
        if test is not None:
            echo()
            print_table(tuning.scores(), format)
    else:
        echo(str(tuning) if format is options.Format.table else tuning.to_markdown())
