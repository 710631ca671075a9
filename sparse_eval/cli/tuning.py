"""The command that searches hyperparameters: tune."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..core.files import make_folder
from ..core.formatting import records
from .data import holdout_of, is_split, load, load_parts, loader_options, split_by
from .options import (
    Format,
    Fraction,
    Header,
    Held,
    History,
    InputFormat,
    Item,
    Metrics,
    Printed,
    Progress,
    Seed,
    SkipBad,
    SplitMethod,
    Time,
    User,
    Value,
)
from .printing import counted, print_table, step, warnings_in_a_line

if TYPE_CHECKING:
    import pandas as pd

    from ..datasets.split import Holdout
    from ..models.tune import Tuning

__all__ = ["tune"]


def tune(
    input: Annotated[  # noqa: A002
        Path,
        typer.Argument(
            help="Interactions; a folder that `split` wrote, whose validation part becomes the "
            "test; or the train part of a split."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for search.json, trials.csv, model.npz, summary.json and per_user.csv; "
            "an interrupted command goes on from it."
        ),
    ],
    test: Annotated[
        Path | None, typer.Argument(help="The other part of a ready-made split: the test.")
    ] = None,
    input_format: InputFormat = None,
    user: User = None,
    item: Item = None,
    value: Value = None,
    timestamp: Time = None,
    header: Header = True,
    skip_bad_lines: SkipBad = False,
    history: History = True,
    method: SplitMethod = None,
    fraction: Fraction = None,
    n: Held = None,
    factors: Annotated[
        str, typer.Option(help="ALS: latent factors: 64, several (32,64,128), or a range (16:256).")
    ] = "64",
    alpha: Annotated[str, typer.Option(help="ALS: weight of an interaction, likewise.")] = "40",
    regularization: Annotated[str, typer.Option(help="ALS: regularization, likewise.")] = "0.1",
    iterations: Annotated[str, typer.Option(help="ALS: most iterations, likewise.")] = "15",
    draws: Annotated[
        int | None,
        typer.Option(
            help="Trials to draw at random, from ranges log-uniformly.",
            show_default="the grid of all values",
        ),
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(help="End a trial after so many iterations without a better one."),
    ] = None,
    monitor: Annotated[
        str | None,
        typer.Option(
            help="The metric that says which iteration and trial is best.", show_default="the first"
        ),
    ] = None,
    seed: Seed = 0,
    metric: Metrics = ["ndcg@10,recall@10,map@10"],  # noqa: B006
    progress: Progress = None,
    format: Printed = Format.table,  # noqa: A002
) -> None:
    """Search ALS's hyperparameters on a validation part; test the best once on a third part."""
    from ..inputs.relevance import Relevance
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
        seed=seed,
    )
    make_folder(out)
    options = loader_options(user, item, value, timestamp, header, skip_bad_lines, history)
    whole: Holdout
    if test is not None:
        rest, held = load_parts(input, test, input_format, options)
        whole = holdout_of(rest, held)
    elif is_split(input):
        from ..datasets.split import Holdout

        whole = Holdout.load(input)
        rest = whole.train
    else:
        interactions = load(input, input_format, options)
        whole = split_by(interactions, method, fraction, n, seed, "hold out the test part")
        rest = interactions.without(whole.validation)
    part = split_by(rest, method, fraction, n, seed, "hold out the validation part")
    truth = Relevance.from_csr(whole.validation, users=whole.users, items=whole.items)
    with step("tune") as note, warnings_in_a_line():
        found = search.run(part.train, part.validation, test=truth, out=out, progress=progress)
        note(counted(len(found.trials), "trial"))
    _print_tuning(found, format)
    failed = int((found.trials["status"] == "failed").sum())
    if failed:
        typer.echo(f"{failed:,} of {counted(len(found.trials), 'trial')} failed", err=True)
    if found.best is None:
        raise typer.Exit(1)


def _print_tuning(found: Tuning, format: Format) -> None:  # noqa: A002
    """Print the trials, and apart from them the test."""
    import pandas as pd

    trials = found.trials
    if format is Format.json:
        rows = records(trials.astype(object).where(trials.notna(), None))
        content = {"trials": rows, "best": found.best, "test": found.test}
        typer.echo(json.dumps(content, indent=2, ensure_ascii=False))
        return
    print_table(trials if format is Format.csv else _narrow_trials(trials), format)
    if found.best is None or found.test is None:
        return
    of_best = trials[trials["best"]].iloc[0]
    scores = [
        (name, float(of_best[name]), values["mean"])
        for name, values in found.test["metrics"].items()
    ]
    typer.echo()
    print_table(pd.DataFrame(scores, columns=["metric", "validation", "test"]), format)
    if format is not Format.csv:
        chosen = ", ".join(f"{name} {value}" for name, value in found.best.items())
        typer.echo(f"\nbest: trial {of_best['trial']} ({chosen})")
        typer.echo(
            f"test: trained once more, on train and validation; means over "
            f"{found.test['n_users']:,} users, {found.test['n_skipped']:,} left out (nothing "
            "relevant)"
        )


def _narrow_trials(trials: pd.DataFrame) -> pd.DataFrame:
    """Leave out what no failure has to tell, and show numbers as people write them."""
    errors = ["error"] if (trials["status"] == "failed").any() else []
    columns = [name for name in trials.columns if name not in ("status", "error")]
    shown = trials[[*columns, *errors]].copy()
    shown["best"] = ["*" if best else "" for best in trials["best"]]
    for name in ("alpha", "regularization"):
        shown[name] = [f"{value:g}" for value in trials[name]]
    shown["seconds"] = [f"{seconds:.1f}" for seconds in trials["seconds"]]
    return shown.astype(object).where(shown.notna(), "")
