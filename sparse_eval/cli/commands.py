"""The commands of the command line, and the options before them."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from .comparing import compare, report
from .echo import echo
from .interrupts import tell_what_is_kept
from .listing import metrics
from .options import expand_groups
from .printing import counted
from .recommending import recommend
from .scoring import evaluate, score
from .training import demo, run, split, train
from .tuning import tune

app = typer.Typer(
    name="sparse-eval",
    help="Evaluate recommenders trained on large implicit-feedback data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (
    demo, run, split, train, tune, score, evaluate, recommend, compare, report, metrics,
):  # fmt: skip
    app.command()(expand_groups(tell_what_is_kept(_command)))


@app.command("compile")
@tell_what_is_kept
def compile_ahead() -> None:
    """Compile every kernel ahead: for an image, or the cache of continuous integration.

    They are kept in the folder that NUMBA_CACHE_DIR names, or else in the package's own, or else in
    one of the user; later processes read them there, also if they cannot write.
    """
    from ..models.compile import compile_kernels

    folder, processor, n_compiled = compile_kernels()
    echo(f"compiled {counted(n_compiled, 'kernel')} for {processor}; all are in {folder}")


def _print_version(requested: bool) -> None:
    if requested:
        echo(version("sparse_eval"))
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    # `main` handles the first option, and a callback the second.
    pass
