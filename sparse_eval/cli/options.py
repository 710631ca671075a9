"""Options are declared once: as parameters of a command, or as fields of a group of options.

This module also has the groups of most commands: execution and printing of results.

A group is a dataclass, whose methods use the values. The docstring of the command or group has the
help of each option, its annotation the rest. A field has the name of the argument that it sets in
Python, so that an error about an argument can name the option.
"""

from __future__ import annotations

import atexit
import csv
import dataclasses
import inspect
import json
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from time import perf_counter
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    runtime_checkable,
)

import typer
from typer.core import TyperOption

from ..core.arguments import check_bytes
from ..core.atomic_files import as_path
from ..core.formatting import records, text_of_frame
from ..core.threads import limited_threads
from ..errors import InvalidDataError, SparseEvalError
from ..inputs.input_files import is_uri
from .terminal import LINE, QUIET, echo, note

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    import pandas as pd

    from ..core.types import JSONValue
    from ..results import Evaluation

T = TypeVar("T")

#: The options that are typed on the command line, by their fields. Others are set by the
#: environment, or have their defaults.
_TYPED: ContextVar[dict[str, str]] = ContextVar("_TYPED")


def typed(*names: str) -> list[str]:
    """Return the options, among the fields `names`, that are typed on the command line.

    Typed options replace contradicting options of the environment.
    """
    return [_TYPED.get()[name] for name in names if name in _TYPED.get()]


def check_applies(names: Iterable[str], known: Iterable[str], choice: str) -> None:
    """Raise if an option is typed that is not among those known to a choice, as ``--model bpr``."""
    for flag in typed(*sorted({*names} - {*known})):
        raise InvalidDataError(f"{flag} does not apply to {choice}; leave it out")


def _checked(value: Callable[[], T]) -> T:
    """Return the value of an option, or raise an error to which typer adds the option."""
    try:
        return value()
    except InvalidDataError as error:
        raise typer.BadParameter(str(error)) from None


def path(word: str | Path) -> Path:
    """Return the path that a word names, which is not the current folder if it is empty.

    Help texts call such words by the name of this function.
    """
    return _checked(lambda: as_path(word))


def number_of_bytes(text: str) -> int:
    """Return a number of bytes, or raise before any work is done."""
    return _checked(lambda: check_bytes("memory", text))


def file(word: str | Path) -> Any:
    """Return the path of an input, or its URI; ``-`` is a copy of standard input, of CSV."""
    if is_uri(word):
        return word
    if str(word) != "-":
        return path(word)
    place = tempfile.mkdtemp(prefix="sparse_eval_")
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    copy = Path(place, "standard_input.csv")
    with copy.open("wb") as target:
        if sys.stdin is not None:  # as it is where a job starts without one
            if sys.stdin.closed:
                raise typer.BadParameter("only one input can be -, standard input")
            with sys.stdin as source:
                shutil.copyfileobj(source.buffer, target)
    return copy


def option(*names: str, **settings: Any) -> dict[str, Any]:
    """Return arguments of `typer.Option`; without names, the field names the option."""
    return {"param_decls": names, **settings} if names else settings


#: An option that only ``--help-all`` shows.
Rare: TypeAlias = Annotated[T, option(hidden=True)]

#: A path that is written. Other paths are read, and may be ``-``, standard input.
Output: TypeAlias = Annotated[T, option(parser=path)]

Seed: TypeAlias = Annotated[int, option(help="Random seed.", min=0)]

UserColumn: TypeAlias = Annotated[str | None, option(help="Column of users. [recognized]")]
ItemColumn: TypeAlias = Annotated[str | None, option(help="Column of items. [recognized]")]

Metrics: TypeAlias = Annotated[list[str] | None, option("--metric", "-m")]

AllowSeen: TypeAlias = Annotated[
    bool, option(help="Seen items are candidates and may be recommended again.")
]

#: A folder for an evaluation.
ResultFolder: TypeAlias = Output[
    Annotated[
        Path | None,
        option(help="Folder for summary.json and per_user.parquet; created if missing."),
    ]
]


@runtime_checkable
class Applied(Protocol):
    """A group of options that are in force while a command runs."""

    def applied(self) -> AbstractContextManager[None]:
        """Apply the options to the commands of a block."""


@dataclass(frozen=True)
class Running:
    """How a command computes and shows its progress.

    Parameters
    ----------
    threads
        Number of threads. [one per core]
    quiet
        Show only results, warnings and errors.
    log_format
        Write progress, warnings and errors as lines of text, or as JSON objects.
    """

    threads: Annotated[int | None, option(min=1)] = None
    quiet: Annotated[bool, option("--quiet", "-q")] = False
    log_format: Rare[Literal["text", "json"]] = "text"  # `message_lines` handles it

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the options to the commands of a block."""
        quiet = QUIET.set(self.quiet)
        try:
            with limited_threads(self.threads):
                yield
        finally:
            QUIET.reset(quiet)


@dataclass(frozen=True)
class Progress(Running):
    """The options of commands that take long.

    Parameters
    ----------
    progress
        Show progress bars. [on a terminal; elsewhere a line now and then]
    """

    progress: Rare[bool | None] = None

    @property
    def bars(self) -> bool | None:
        """The value of `progress` in Python."""
        return False if self.quiet and self.progress is None else self.progress


@dataclass(frozen=True)
class Evaluating(Progress):
    """The options of commands that evaluate.

    Parameters
    ----------
    memory
        Evaluate users in blocks that take at most so much memory, as 2GB. [all users at once]
    """

    memory: Rare[Annotated[int | None, option(parser=number_of_bytes, metavar="SIZE")]] = None


#: How text begins that a spreadsheet takes for a formula, by OWASP's page on CSV injection; also in
#: the wide forms that East Asian versions read.
_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = Sequence[Row] | None

#: How a result is printed.
Format: TypeAlias = Literal["table", "json", "jsonl", "csv", "markdown"]


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
    note(f"{name}: {', '.join([*notes, f'{seconds:.1f} s'])}")


@dataclass(frozen=True)
class Printing:
    """How a result is printed.

    Parameters
    ----------
    printed
        How to print the result.
    safe_csv
        CSV for a spreadsheet: an apostrophe before text that it would take for a formula.
    """

    printed: Annotated[Format, option("--format")] = "table"
    safe_csv: Rare[bool] = False

    @property
    def for_people(self) -> bool:
        """Whether the output is for people."""
        return self.printed in ("table", "markdown")

    def evaluation(
        self, ev: Evaluation, out: Path | None, row: Row | None = None, **about: JSONValue
    ) -> None:
        """Print the table of an evaluation, and save it in a folder.

        The command and `about` are saved with it. In JSON, `row` is printed with it, as the only
        one of several.
        """
        if out is not None:
            ev.save(out, about={"command": LINE.get(), **about})
        if self.for_people:
            echo(ev.to_markdown() if self.printed == "markdown" else str(ev))
        else:
            content = ev.to_dict()
            rows = [(row or {}) | content]
            self.table(ev.summary().reset_index(), rows, rows if row else content)

    def table(self, table: pd.DataFrame, rows: Rows = None, content: Any = None) -> None:
        """Print a table in any format.

        `rows` are its rows for JSON lines, and `content` is all of it for JSON.
        """
        rows = records(table) if rows is None and self.printed.startswith("json") else rows or []
        if self.printed == "json":
            text = json.dumps(content or rows, indent=2, ensure_ascii=False)
        elif self.printed == "jsonl":
            text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
        elif self.printed == "csv":
            text = csv_text(table, self.safe_csv)
        else:
            text = text_of_frame(table, "simple" if self.printed == "table" else "pipe")
        echo(text, nl=not text.endswith("\n"), data=not self.for_people)


def csv_text(table: pd.DataFrame, safe: bool) -> str:
    """Return a table as CSV, without its index.

    If `safe`, text is in quotes, and begins with an apostrophe where a spreadsheet would take it
    for a formula; numbers stay as they are.
    """
    if not safe:
        return table.to_csv(index=False, lineterminator="\n")
    harmless = table.map(_harmless).rename(columns=_harmless)
    return harmless.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)


def _harmless(cell: Any) -> Any:
    """Return a cell, escaped if it is text that would run as a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_SIGNS) else cell


def _show_all(context: typer.Context, wanted: bool) -> None:
    if wanted:
        options = [one for one in context.command.params if isinstance(one, TyperOption)]
        hidden = [one for one in options if one.hidden]
        for one in hidden:
            one.hidden = False
        echo(context.get_help())
        for one in hidden:  # the command is kept for the next call
            one.hidden = True
        raise typer.Exit


_HELP_ALL = typer.Option(
    False,
    "--help-all",
    help="Show all options, also rare ones, and exit.",
    is_eager=True,
    callback=_show_all,
)


def declare(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command as typer needs it, with each field of its groups as an option.

    Positional parameters are arguments. Each option can also be set by an environment variable,
    such as SPARSE_EVAL_SPLIT.
    """
    groups: dict[str, tuple[Any, dict[str, str]]] = {}
    declared: dict[str, tuple[Any, Any]] = {}
    flags: dict[str, str] = {}
    options: dict[str, str] = {}
    text, described = _documented(command)
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        group = parameter.annotation
        if is_group := dataclasses.is_dataclass(group):
            kinds, helps = get_type_hints(group, include_extras=True), _documented(group)[1]
            defaults = {field.name: field.default for field in dataclasses.fields(group)}
        else:
            kinds, helps, defaults = {name: group}, described, {name: parameter.default}
        names: dict[str, str] = {}
        for field, default in defaults.items():
            kind, settings = _settings(kinds[field])
            settings = {"help": helps.get(field), **settings}
            default = ... if default is parameter.empty else default
            if is_group or parameter.kind is parameter.KEYWORD_ONLY:
                given, flag, info = _option_of(field, kind, default, settings)
                flags.setdefault(field, flag)
                options.setdefault(field, given)
            else:
                given, info = field, typer.Argument(default, show_default=False, **settings)
            declared[given] = kind, info
            names[field] = given
        groups[name] = group if is_group else None, names

    @wraps(command)
    def run(context: typer.Context, **values: Any) -> None:
        sources = {field: context.get_parameter_source(name) for field, name in options.items()}
        _TYPED.set(
            {
                field: flags[field]
                for field, source in sources.items()
                if source is not None and source.name == "COMMANDLINE"
            }
        )
        made = {}
        try:
            with ExitStack() as stack:
                for name, (group, names) in groups.items():
                    given = {field: values[place] for field, place in names.items()}
                    made[name] = group(**given) if group else given[name]
                    if isinstance(made[name], Applied):
                        stack.enter_context(made[name].applied())
                command(**made)
        except SparseEvalError as error:
            if error.argument in flags:
                error.add_note(f"(option {flags[error.argument]})")
            raise

    declared |= {"all": (bool, _HELP_ALL), "context": (typer.Context, inspect.Parameter.empty)}
    run.__doc__ = text
    run.__annotations__ = {name: kind for name, (kind, _) in declared.items()}
    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=info, annotation=kind)
        for name, (kind, info) in declared.items()
    ]
    cast("Any", run).__signature__ = inspect.Signature(parameters)  # which typer reads
    return run


def _option_of(
    field: str, kind: Any, default: Any, settings: dict[str, Any]
) -> tuple[str, str, Any]:
    """Return the parameter of an option, its spelling in messages, and what typer declares."""
    flag = f"--{field.replace('_', '-')}"
    switch = f"{flag}/--no-{flag[2:]}" if kind == bool | None else flag
    words = settings.pop("param_decls", (switch,))
    on, _, off = words[0].partition("/")
    given = on.removeprefix("--").replace("-", "_")
    settings |= {"envvar": f"SPARSE_EVAL_{given.upper()}", "show_envvar": False}
    return given, off if off and default else on, typer.Option(default, *words, **settings)


def _settings(annotation: Any) -> tuple[Any, dict[str, Any]]:
    """Return the type of an option, and the settings that its annotation has."""
    is_annotated = get_origin(annotation) is Annotated
    kind, *more = get_args(annotation) if is_annotated else [annotation]
    settings: dict[str, Any] = {}
    if kind in (Path, Path | None):
        settings["parser"] = file
        kind = str if kind is Path else str | None  # some versions of typer make a Path of a URI
    for each in more:
        settings |= each
    return kind, settings


def _documented(thing: Any) -> tuple[str, dict[str, str]]:
    """Return the text of a docstring before its parameters, and the description of each."""
    helps: dict[str, str] = {}
    for each in reversed(inspect.getmro(thing) if isinstance(thing, type) else [thing]):
        text, _, rest = inspect.cleandoc(each.__doc__ or "").partition("Parameters\n----------\n")
        for name, lines in re.findall(r"^(\w+)\n((?: .*\n?)+)", rest, re.M):
            helps[name] = " ".join(lines.split())
    return text.strip(), helps
