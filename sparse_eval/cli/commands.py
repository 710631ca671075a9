"""The list of all commands, the options before them, and the commands metrics and compile."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from importlib.metadata import version
from itertools import takewhile
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from ..errors import InvalidDataError
from .comparing import compare, report
from .evaluating import evaluate, recommend, score
from .fitting import demo, run, split, train, tune
from .options import Printing, Running, counted, declare
from .terminal import echo

if TYPE_CHECKING:
    from ..metrics import Definition

SYMBOLS = (
    "k: cut-off; r: rank; g, h: gain of the item at a rank, and whether it is relevant (g > 0);\n"
    "n: relevant items of the user; C: candidate items of the user; N: items of the catalogue"
)

#: Former options of commands, and what replaces them.
_SHARED = "results are compared on the users that they share, and a note counts the others"
FORMER = {
    ("compare", "--users"): _SHARED,
    ("report", "--users"): _SHARED,
    ("report", "--item-names"): "Evaluation.explain in Python shows the list of a user",
    ("score", "--watch"): "repeat the command with a timer; it scores only changed checkpoints",
    ("split", "--keep"): "use --events",
}


def metrics(name: str | None = None, *, convention: str | None = None, printing: Printing) -> None:
    """List the metrics, describe one, or show what another library's convention changes.

    Example: sparse-eval metrics ndcg

    Parameters
    ----------
    name
        A metric to show in detail.
    convention
        Show how a convention differs; `all` lists the conventions.
    """
    import pandas as pd

    from ..metrics import CONVENTIONS, REGISTRY, convention_named
    from ..metrics.registry import definition, load_extensions

    load_extensions()
    entry = None if name is None else definition(re.split("[@(]", name)[0])
    if name is not None and convention is not None:
        raise InvalidDataError("give either a metric or --convention, not both")
    if convention == "all":
        names = [(rules.name, rules.library) for rules in CONVENTIONS.values()]
        printing.table(pd.DataFrame(names, columns=["convention", "of"]))
    elif convention is not None:
        rules = convention_named(convention)
        rows = rules.differences()
        if not rows:
            raise InvalidDataError(f"{convention!r} is the default, without --convention")
        printing.table(pd.DataFrame(rows, columns=["what differs", rules.name, "standard"]))
    elif entry is None:
        facts = [
            (entry.spelling, entry.text, ", ".join(option.name for option in entry.options),
             entry.description)
            for entry in REGISTRY.values()
        ]  # fmt: skip
        printing.table(pd.DataFrame(facts, columns=["metric", "formula", "options", "meaning"]))
        if printing.for_people:
            echo(f"\n{SYMBOLS}")
    else:
        printing.table(pd.DataFrame(facts_of(entry), columns=["fact", "value"]))


def facts_of(entry: Definition) -> list[tuple[str, str]]:
    """Return the facts about a metric as pairs of a name and a text."""
    from ..metrics.registry import ALIASES, ALIASES_WITH_OPTION

    cutoffs = {
        "required": "required",
        "optional": "optional: the whole list by default",
        "none": "none: uses whole lists",
    }
    defaults = {option.name: option.default for option in entry.options}
    lower, most = entry.range
    upper = most(defaults) if callable(most) else most
    reach = f"{lower:g} and above" if upper == math.inf else f"{lower:g} to {upper:g}"
    if callable(most):
        reach += ", above with other options"
    needs = [*entry.needs, *(f"{need} ({option.name}={value})"
             for option in entry.options for value, need in option.needs.items())]  # fmt: skip
    arguments = {option.name: option.value(option.default) for option in entry.options}
    others = [alias for alias, names in ALIASES.items() if names == (entry.name,)]
    others += [
        f"{alias} ({option})"
        for alias, (name, option) in ALIASES_WITH_OPTION.items()
        if name == entry.name
    ]
    facts = {
        "metric": entry.name,
        "also called": ", ".join(others),
        "in plain words": entry.plain,
        "meaning": entry.description,
        "formula": entry.text,
        "cut-off": cutoffs[entry.cutoff],
        "values": "for each user" if entry.per_user else "one for all users together",
        "range": reach,
        "needs": ", ".join(needs) or "nothing else",
        "expectation over tied items": "yes" if entry.formula.averages_ties(arguments) else "no",
    }
    for option in entry.options:
        facts[f"option {option.name}"] = f"{option.allowed}: {option.description}"
    return [(name, fact) for name, fact in [*facts.items(), ("source", entry.source)] if fact]


def compile_ahead(execution: Running) -> None:
    """Compile every kernel ahead: for an image, or the cache of continuous integration.

    Example: NUMBA_CACHE_DIR=kernels sparse-eval compile

    Kernels are kept in the folder NUMBA_CACHE_DIR, if it is set. Otherwise they are in the
    package's folder, or in the user's if that is read-only. Later processes only read them.
    """
    from .compile import compile_kernels

    folder, processor, n_compiled = compile_kernels()
    echo(f"compiled {counted(n_compiled, 'kernel')} for {processor}; all are in {folder}")


class _Command(TyperCommand):
    """A command that shows what replaces a former option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        typed = {word.partition("=")[0] for word in takewhile("--".__ne__, args)}
        for (name, option), instead in FORMER.items():
            if name == self.name and option in typed:
                raise InvalidDataError(f"{name} has no option {option} any more; {instead}")
        return super().parse_args(ctx, args)


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
    app.command(_name, cls=_Command, no_args_is_help=_name not in ("demo", "metrics", "compile"))(
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
