"""What the commands print: results to standard output, what is being done to standard error."""

from __future__ import annotations

import json
import warnings
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

import typer

from ..core.formatting import records
from .options import Format

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pandas as pd

    from ..results import Evaluation

__all__ = ["counted", "print_evaluation", "print_table", "step", "warnings_in_a_line"]


def counted(n: int, what: str) -> str:
    """Return so many of something: "1 result", "2 results"."""
    return f"{n:,} {what}" + ("" if n == 1 else "s")


@contextmanager
def step(what: str) -> Iterator[Any]:
    """Say what is being done, and, when it is done, what came of it and how long it took."""
    notes: list[str] = []
    start = perf_counter()
    yield notes.append
    seconds = perf_counter() - start
    typer.echo(f"{what}: {', '.join([*notes, f'{seconds:.1f} s'])}", err=True)


@contextmanager
def warnings_in_a_line() -> Iterator[None]:
    """Show what is warned of once, and without the place in our code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        typer.echo(f"warning: {message}", err=True)


def print_evaluation(
    command: typer.Context,
    ev: Evaluation,
    format: Format,  # noqa: A002
    out: Path | None,
    **about: Any,
) -> None:
    """Print the means, the cut-offs side by side, and leave everything in a folder.

    What is said `about` it is remembered there, with the command.
    """
    if out is not None:
        ev.save(out, about={"command": command.obj, **about})
    if format is Format.json:
        typer.echo(ev.to_json(), nl=False)
    elif format is Format.csv:
        typer.echo(ev.summary().to_csv(lineterminator="\n"), nl=False)
    else:
        print_table(_by_cutoff(ev), format)
        why = "nothing relevant" if ev.convention == "standard" else f"as {ev.convention} does"
        left_out = f", {ev.n_skipped:,} left out ({why})" if ev.n_skipped else ""
        typer.echo(f"\nmeans over {ev.n_users:,} users{left_out}")
        for name, n_users in ev.n_users_of.items():
            if n_users != ev.n_users:
                typer.echo(f"{name}: over {n_users:,} users")


def _by_cutoff(ev: Evaluation) -> pd.DataFrame:
    """Put the cut-offs side by side: one row for each metric."""
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


def print_table(table: pd.DataFrame, format: Format) -> None:  # noqa: A002
    """Print a table in any format."""
    if format is Format.json:
        typer.echo(json.dumps(records(table), indent=2, ensure_ascii=False))
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
