"""The command that searches hyperparameters: tune."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..core.files import make_folder
from ..core.formatting import records
from ..errors import InvalidDataError
from .checks import check_splitting
from .loading import (
    holdout_of,
    is_split,
    load,
    load_candidates,
    load_parts,
    refuse_filters,
    times_for,
)
from .options import (
    AllowSeen,
    Candidates,
    Filtering,
    Format,
    JudgedOnly,
    Loading,
    Metrics,
    Printed,
    Progress,
    Seed,
    Splitting,
    TestAt,
    seen_option,
)
from .printing import counted, print_json, print_lines, print_table, step, warnings_in_a_line
from .splitting import only_known, split_by, with_test

if TYPE_CHECKING:
    import pandas as pd

    from ..datasets.split import Holdout
    from ..models.tune import Tuning


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
            help="Folder for search.json, trials.csv, model.npz, summary.json and per_user.csv; "
            "an interrupted command resumes from it."
        ),
    ],
    test: Annotated[
        Path | None, typer.Argument(help="The test part of a ready-made split.")
    ] = None,
    *,
    loading: Loading,
    filtering: Filtering,
    splitting: Splitting,
    test_at: TestAt = None,
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
    draws: Annotated[
        int | None,
        typer.Option(
            help="Number of random trials; ranges are sampled log-uniformly.",
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
    candidates: Candidates = None,
    allow_seen: AllowSeen = False,
    judged_only: JudgedOnly = False,
    seed: Seed = 0,
    metric: Metrics = ["ndcg@10,recall@10,map@10"],
    progress: Progress = None,
    format: Printed = Format.table,
) -> None:
    """Search ALS's hyperparameters on a validation part, and test the best on a third part."""
    from ..inputs.relevance import Relevance
    from ..models.inputs import training_part
    from ..models.tune import Search

    search = Search(
        metric,
        factors=factors,
        alpha=alpha,
        regularization=regularization,
        iterations=iterations,
        draws=draws,
        patience=patience,
        monitor=monitor,
        among=candidates is not None,
        seen=seen_option(allow_seen),
        judged_only=judged_only,
        seed=seed,
    )
    check_splitting(splitting)
    make_folder(out)
    parts = _three_parts(input, test, loading, filtering, splitting, test_at, seed)
    among = load_candidates(candidates, loading)
    truth = Relevance.from_csr(parts.test, users=parts.users, items=parts.items)
    with step("tune") as note, warnings_in_a_line():
        train = training_part(parts)
        tuning = search.run(
            train,
            parts.validation,
            candidates=among,
            test=truth,
            test_candidates=among,
            out=out,
            progress=progress,
        )
        note(counted(len(tuning.trials), "trial"))
    _print_tuning(tuning, format)
    _report_failures(tuning)


def _three_parts(
    input: Path,
    test: Path | None,
    loading: Loading,
    filtering: Filtering,
    splitting: Splitting,
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
    purpose = "hold out the validation part"
    if test is not None:
        rest, held_out = load_parts(input, test, loading, times_for(splitting))
        parts = with_test(split_by(rest, splitting, seed, purpose), holdout_of(rest, held_out))
    else:
        from ..datasets.split import Holdout

        whole = Holdout.load(input)
        if whole.test is None and whole.fold_in is not None:
            raise InvalidDataError(
                f"{input} holds out users, and has none for the test; give the interactions that "
                "it was made of, with --method users"
            )
        if whole.test is None:
            parts = with_test(split_by(whole.train, splitting, seed, purpose), whole)
        elif splitting._replace(timestamp=None, only_known=False) != Splitting():
            raise InvalidDataError(
                f"{input} is split in three already; leave --method and its options out"
            )
        else:
            parts = whole
    return only_known(parts) if splitting.only_known else parts


def _print_tuning(tuning: Tuning, format: Format) -> None:
    """Print the trials and, apart from them, the test."""
    import pandas as pd

    trials = tuning.trials
    if format in (Format.json, Format.jsonl):
        rows = records(trials.astype(object).where(trials.notna(), None))
        if format is Format.jsonl:
            print_lines([*rows, {"best": tuning.best, "test": tuning.test}])
        else:
            print_json({"trials": rows, "best": tuning.best, "test": tuning.test})
        return
    print_table(trials if format is Format.csv else _narrow_trials(trials), format)
    if tuning.best is None or tuning.test is None:
        return
    best = trials[trials["best"]].iloc[0]
    columns = list(trials.columns)
    names = columns[columns.index("best_iteration") + 1 : columns.index("seconds")]
    tested = tuning.test["metrics"].values()
    scores = [
        (name, float(best[name]), values["mean"])
        for name, values in zip(names, tested, strict=True)
    ]
    typer.echo()
    print_table(pd.DataFrame(scores, columns=["metric", "validation", "test"]), format)
    if format is not Format.csv:
        parameters = ", ".join(f"{name} {value}" for name, value in tuning.best.items())
        typer.echo(f"\nbest: trial {best['trial']} ({parameters})")
        typer.echo(
            "test: trained again on train and validation; means over "
            f"{counted(tuning.test['n_users'], 'user')}, {tuning.test['n_skipped']:,} left out "
            "(nothing relevant)"
        )


def _report_failures(tuning: Tuning) -> None:
    """Say how many trials failed, and exit with 1 if all did."""
    n_failed = int((tuning.trials["status"] == "failed").sum())
    if n_failed:
        typer.echo(f"{n_failed:,} of {counted(len(tuning.trials), 'trial')} failed", err=True)
    if tuning.best is None:
        raise typer.Exit(1)


def _narrow_trials(trials: pd.DataFrame) -> pd.DataFrame:
    """Return the table for display: without status, and without errors if there are none."""
    errors = ["error"] if (trials["status"] == "failed").any() else []
    columns = [name for name in trials.columns if name not in ("status", "error")]
    shown = trials[[*columns, *errors]].copy()
    shown["best"] = ["*" if best else "" for best in trials["best"]]
    for name in ("alpha", "regularization"):
        shown[name] = [f"{value:g}" for value in trials[name]]
    shown["seconds"] = [f"{seconds:.1f}" for seconds in trials["seconds"]]
    return shown.astype(object).where(shown.notna(), "")
