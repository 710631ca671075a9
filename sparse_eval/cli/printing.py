"""Print results to standard output, and progress and warnings to standard error."""

from __future__ import annotations

import json
import warnings
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

import typer

from ..core.formatting import records
from .options import Format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pandas as pd

    from ..core.types import JSONValue
    from ..results import Evaluation


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1: "1 result", "2 results"."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


@contextmanager
def step(name: str) -> Iterator[Callable[[str], None]]:
    """Report a step of a command when it ends: the notes given, and how long it took."""
    notes: list[str] = []
    start = perf_counter()
    yield notes.append
    seconds = perf_counter() - start
    typer.echo(f"{name}: {', '.join([*notes, f'{seconds:.1f} s'])}", err=True)


@contextmanager
def warnings_in_a_line() -> Iterator[None]:
    """Print each different warning once, in a line without the place in the source code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        typer.echo(f"warning: {message}", err=True)


def print_evaluation(
    command: typer.Context,
    ev: Evaluation,
    format: Format,
    out: Path | None,
    **about: JSONValue,
) -> None:
    """Print the means, with cut-offs side by side, and save the evaluation in a folder.

    The command and what is given as `about` are saved with it.
    """
    if out is not None:
        ev.save(out, about={"command": command.obj, **about})
    if format is Format.json:
        typer.echo(ev.to_json(), nl=False)
    elif format is Format.csv:
        typer.echo(ev.summary().to_csv(lineterminator="\n"), nl=False)
    else:
        print_table(_by_cutoff(ev), format)
        reason = "nothing relevant" if ev.convention == "standard" else f"as {ev.convention} does"
        left_out = f", {ev.n_skipped:,} left out ({reason})" if ev.n_skipped else ""
        typer.echo(f"\nmeans over {counted(ev.n_users, 'user')}{left_out}")
        for name, n_users in ev.n_users_of.items():
            if n_users != ev.n_users:
                typer.echo(f"{name}: over {counted(n_users, 'user')}")


def _by_cutoff(ev: Evaluation) -> pd.DataFrame:
    """Return the means with a row for each metric and a column for each cut-off."""
    import pandas as pd

    cells: dict[str, dict[int, str]] = {}
    headings: dict[int, str] = {}
    for metric in ev.metrics:
        name = str(metric).partition("@")[0]
        cells.setdefault(name, {})[metric.k] = f"{ev[metric]:.6f}"
        headings[metric.k] = "whole list" if metric.cutoff is None else f"@{metric.cutoff}"
    cutoffs = sorted(headings)
    return pd.DataFrame(
        [[name, *(row.get(k, "") for k in cutoffs)] for name, row in cells.items()],
        columns=["metric", *(headings[k] for k in cutoffs)],
    )


def print_json(content: object) -> None:
    """Print JSON, indented."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False))


def print_table(table: pd.DataFrame, format: Format) -> None:
    """Print a table in any format."""
    if format is Format.json:
        print_json(records(table))
    elif format is Format.csv:
        typer.echo(table.to_csv(index=False, lineterminator="\n"), nl=False)
    else:
        from tabulate import tabulate

        cells = [
            [f"{value:.6f}" if isinstance(value, float) else value for value in row]
            for row in table.itertuples(index=False)
        ]
        style = "simple" if format is Format.table else "pipe"
        typer.echo(
            tabulate(cells, headers=list(table.columns), tablefmt=style, disable_numparse=True)
        )
