"""The list of all commands, imported when they are called, and the options before them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import takewhile
from typing import Any, cast

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from ..errors import InvalidDataError
from .terminal import echo

#: Former options of commands, and what replaces them.
_SHARED = "results are compared on the users that they share, and a note counts the others"
_GATE = (
    "sparse-eval gate RULES.toml --candidate FOLDER --champion FOLDER judges a model, by rules "
    "that `sparse-eval gate --example` shows"
)
_NIGHT = "sparse-eval night CONFIG.toml decides every night, and keeps the decisions"
FORMER = {
    ("compare", "--users"): _SHARED,
    ("compare", "--fail-if-worse"): _GATE,
    ("compare", "--tolerance"): _GATE,
    ("report", "--users"): _SHARED,
    ("report", "--item-names"): "Evaluation.explain in Python shows the list of a user",
    ("report", "--history"): "--nights FOLDER shows the decisions that `sparse-eval night` wrote",
    **{(name, "--fail-under"): _GATE for name in ("score", "evaluate")},
    **{
        (name, option): _NIGHT
        for name in ("score", "evaluate")
        for option in ("--history", "--night")
    },
    ("score", "--watch"): "repeat the command with a timer; it scores only changed checkpoints",
    ("split", "--keep"): "use --events",
}


#: The module and the function of each command, and the first line of its docstring. Help shows the
#: line without the import, which takes a second.
COMMANDS = {
    "demo": (
        "fitting",
        "demo",
        "Run every step on synthetic clicks: generate, split, train, recommend, score.",
    ),
    "run": ("fitting", "run", "Split, train a model, recommend and score."),
    "split": (
        "fitting",
        "split",
        "Hold out a part of each user's interactions, what came after a point in time, or users.",
    ),
    "train": ("fitting", "train", "Train a model of implicit and save it."),
    "tune": (
        "fitting",
        "tune",
        "Search ALS's hyperparameters on a validation part, and test the best on a third part.",
    ),
    "score": (
        "evaluating",
        "score",
        "Score a checkpoint, or several: print a table and mark the best.",
    ),
    "evaluate": (
        "evaluating",
        "evaluate",
        "Score lists against relevance: two tables, a run against qrels, or two matrices.",
    ),
    "recommend": (
        "evaluating",
        "recommend",
        "Recommend users the items that a model ranks first, without those they have seen.",
    ),
    "compare": (
        "comparing",
        "compare",
        "Compare models: which is better, how certain that is, and for how many users.",
    ),
    "gate": (
        "comparing",
        "gate",
        "Decide by the rules in a file whether a model may replace another.",
    ),
    "night": (
        "night",
        "night",
        "Score new checkpoints, judge the best by rules, and record the decision.",
    ),
    "report": (
        "comparing",
        "report",
        "Write an HTML page about results, with comparisons, segments of users and charts.",
    ),
    "metrics": (
        "metrics",
        "metrics",
        "List the metrics, describe one, or show what another library's convention changes.",
    ),
    "compile": (
        "compile",
        "compile_ahead",
        "Compile every kernel ahead: for an image, or the cache of continuous integration.",
    ),
}

_SETTINGS: dict[str, Any] = {
    "pretty_exceptions_enable": False,
    "rich_markup_mode": None,  # whose boxes take twice the lines
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class _Command(TyperCommand):
    """A command that shows what replaces a former option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        typed = {word.partition("=")[0] for word in takewhile("--".__ne__, args)}
        for (name, option), instead in FORMER.items():
            if name == self.name and option in typed:
                raise InvalidDataError(f"{name} has no option {option} any more; {instead}")
        return super().parse_args(ctx, args)


@cache
def _command(name: str) -> TyperCommand:
    """Import a command; there is one object for each name."""
    from .options import declare

    module, function, _ = COMMANDS[name]
    app = typer.Typer(add_completion=False, **_SETTINGS)
    needs_words = name not in ("demo", "metrics", "compile")
    declared = declare(getattr(import_module(f".{module}", __package__), function))
    app.command(name, cls=_Command, no_args_is_help=needs_words)(declared)
    return cast("TyperCommand", get_command(app))


class _Commands(Mapping[str, TyperCommand]):
    """The commands by name; each is imported when it is read."""

    def __getitem__(self, name: str) -> TyperCommand:
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Group(TyperGroup):
    """All commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _Commands()

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, _, line) in COMMANDS.items()])


app = typer.Typer(
    name="sparse-eval",
    help="Evaluate recommenders trained on large implicit-feedback data. An environment variable "
    "can set each option, such as SPARSE_EVAL_SPLIT.\n\n"
    "Example: sparse-eval run clicks.csv --at 2019-11-14 --out results",
    no_args_is_help=True,
    cls=_Group,
    **_SETTINGS,
)


def _print_version(requested: bool) -> None:
    if requested:
        from ..core.versions import installed_version  # its imports take as long as typer's

        echo(installed_version())
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
