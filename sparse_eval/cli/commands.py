"""The commands of the command line, and the options before them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import typer

from .comparing import compare, report
from .listing import metrics
from .options import Execution, declare
from .printing import counted
from .scoring import evaluate, recommend, score
from .terminal import echo, leaves
from .training import demo, run, split, train, tune


def compile_ahead(execution: Execution) -> None:
    """Compile every kernel ahead: for an image, or the cache of continuous integration.

    Example: NUMBA_CACHE_DIR=kernels sparse-eval compile

    Kernels are kept in the folder NUMBA_CACHE_DIR, if it is set. Otherwise they are in the
    package's folder, or in the user's if that is read-only. Later processes only read them.
    """
    from ..models.compile import compile_kernels

    leaves("kernels compiled so far are kept; the same command compiles the others")
    folder, processor, n_compiled = compile_kernels()
    echo(f"compiled {counted(n_compiled, 'kernel')} for {processor}; all are in {folder}")


app = typer.Typer(
    name="sparse-eval",
    help="Evaluate recommenders trained on large implicit-feedback data. An environment variable "
    "can set each option, such as SPARSE_EVAL_SPLIT.\n\n"
    "Example: sparse-eval run clicks.csv --at 2019-11-14 --out results",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # whose boxes take twice the lines
    context_settings={"help_option_names": ["-h", "--help"]},
)
_COMMANDS: dict[str, Callable[..., None]] = {
    "demo": demo, "run": run, "split": split, "train": train, "tune": tune, "score": score,
    "evaluate": evaluate, "recommend": recommend, "compare": compare, "report": report,
    "metrics": metrics, "compile": compile_ahead,
}  # fmt: skip
for _name, _command in _COMMANDS.items():
    app.command(_name, no_args_is_help=_name not in ("demo", "metrics", "compile"))(
        declare(_command)
    )


def _print_version(requested: bool) -> None:
    if requested:
        echo(version("sparse_eval"))
        raise typer.Exit


@app.callback()
def _options(
    debug: bool = typer.Option(False, "--debug", help="Show the traceback of an error."),
    show_version: bool = typer.Option(
        False, "--version", help="Print the version.", callback=_print_version, is_eager=True
    ),
) -> None:
    # `main` handles the first option, and a callback the second.
    pass
