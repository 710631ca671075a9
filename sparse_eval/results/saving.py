"""Write and read the folder of a saved evaluation, for people and other programs too.

``summary.json`` holds what `Evaluation.to_dict` returns, and

- ``users``: the file of the table of users, its SHA-256, its number of rows, its ``columns`` before
  those of the metrics, and whether ``labels`` are "text", "integer" or null, the users then being
  row numbers; null where the values of the users were not kept;
- ``totals``: the files of exact sums, by name of the baseline ("" for the evaluation itself), with
  their SHA-256; a file may have a different name from the baseline;
- ``per_user``: the metrics that have a column; ``replicates``: the jackknife replicates of every
  other metric; ``higher_is_better``: which way each metric is better; ``lower``: the smallest value
  that it can take, null for minus infinity; ``inputs_given``: which of train, item_groups,
  item_vectors, propensity and candidates it was computed from;
- ``by``: means by "activity" and "popularity", where training data were given;
  ``precision_recall``, at some ranks; ``concentration``: the Lorenz curve of how often items are
  recommended, where complete lists are known; ``examples``: users in depth (null: not known);
- ``versions`` of the libraries; ``inputs``: shape, entries and SHA-256 of each;
- ``about``: what the caller wanted to be remembered;
- ``digest``: SHA-256 of all that, as JSON with sorted keys in one line.

``per_user.csv`` or ``per_user.parquet`` has one row for each user: ``user``; ``evaluated``, 1 or
0; ``relevant``, the number of relevant items; ``fingerprint``, a hash of them; ``seen``, the number
of training items, where it is known; and a column for each metric, empty (null) where the user is
left out. Numbers are written in full.

``totals.npz`` has the exact sums, from which all numbers are computed again, see `serialize`.
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import shutil
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, NamedTuple, NoReturn

import numpy as np

from ..core.arguments import check_choice
from ..core.files import make_folder, remove, replacing_together, temporary_beside
from ..core.parquet import read_parquet, write_parquet
from ..errors import InvalidDataError, InvalidFileError, InvalidMetricError, OutputError
from ..inputs.candidates import JUDGED
from ..metrics import Definition, Metric, convention_named, parse
from ..metrics.plan import Plan
from ..metrics.request import Request
from .numbers import SavedNumber
from .record import SCHEMA, USER_COLUMNS, Record, check_about
from .serialize import pack, unpack
from .totals import Part, Totals, UserValues

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pandas as pd

    from ..metrics import Convention

#: The files of a saved evaluation, the second with a suffix.
SUMMARY, PER_USER = "summary.json", "per_user"

#: Seconds in which the files of a save are moved to their places, one after the other.
_MOVING = 0.1


class Savable(NamedTuple):
    """What of an evaluation is written to a folder; it can be sent between processes.

    Attributes
    ----------
    record : Record
    totals : dict of str to Totals
        By name of the baseline, "" for the evaluation itself.
    labels : str or None
        The kind of the users' labels, None where they are row numbers.
    """

    record: Record
    totals: dict[str, Totals]
    labels: str | None


class Saved(NamedTuple):
    """What a saved evaluation is made of.

    Attributes
    ----------
    request : Request
    parts : dict of str to Part
        By name of the baseline, "" for the evaluation itself.
    numbers : dict of str to dict
        Numbers about all users that totals do not give, likewise.
    record : Record
    labelled : bool
        Whether the users have labels.
    """

    request: Request
    parts: dict[str, Part]
    numbers: dict[str, dict[int, SavedNumber]]
    record: Record
    labelled: bool


def save(
    folder: Path,
    savable: Savable,
    table_kind: Literal["csv", "parquet"],
    about: Mapping[str, Any] | None,
) -> Path:
    """Write the tables and the JSON that names them; see `Evaluation.save`.

    All are written before one is moved to its place, and the JSON is moved last: whoever is killed
    before leaves the evaluation that was there, and a folder without a JSON holds none.
    """
    check_choice("table", table_kind, ["csv", "parquet"])
    content, table = savable.record
    if about is not None:
        content = content | {"about": check_about(about)}
    json.dumps(content, allow_nan=False)  # before anything that is there is replaced
    folder = make_folder(folder)
    earlier = _files_of(folder)
    with replacing_together(folder, last=SUMMARY) as temporary_for:
        files: dict[str, dict[str, str]] = {}
        for name, totals in savable.totals.items():
            # The short name of a baseline, or a number: different also without regard to case.
            is_short = re.fullmatch("[a-z][a-z0-9_-]{0,63}", name)
            place = f"totals-{name if is_short else len(files)}.npz" if name else "totals.npz"
            temporary_for(place).write_bytes(pack(Part(totals)))
            files[name] = {"sha256": _digest(temporary_for(place)), "file": place}
        beside = None
        if table is not None:
            place = f"{PER_USER}.{table_kind}"
            beside = _save_table(table, temporary_for(place), savable.labels) | {"file": place}
        content |= {"users": beside, "totals": files}
        _write_summary(content, temporary_for(SUMMARY))
    for file in earlier.difference(_files_of(folder)):  # of the evaluation that was there
        with suppress(OSError):
            remove(file)
    return folder


def _files_of(folder: Path) -> set[Path]:
    """Return the files beside the JSON of the evaluation in a folder, if there is one."""
    try:
        return {_place(folder / SUMMARY, facts) for facts in _facts(read_summary(folder))}
    except InvalidFileError:
        return set()


def _write_summary(content: dict[str, Any], path: Path) -> None:
    text = json.dumps(_signed(content), indent=2, allow_nan=False) + "\n"
    path.write_text(text, encoding="utf-8")


def read_summary(folder: Path) -> dict[str, Any]:
    """Return the JSON of a saved evaluation, or raise `InvalidFileError`."""
    return _read_json(folder / SUMMARY)


def check_beside(folder: Path, content: Mapping[str, Any]) -> None:
    """Raise unless the files that belong to the JSON of a saved evaluation are there."""
    for facts in _facts(content):
        with _beside(folder / SUMMARY, facts):
            pass


def _facts(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what the JSON says of each file beside it."""
    return [*content["totals"].values(), *filter(None, [content["users"]])]


def copy_saved(source: Path, folder: Path, about: Mapping[str, Any]) -> None:
    """Copy a saved evaluation to another folder, where something else is remembered with it."""
    content = read_summary(source)
    folder = make_folder(folder)
    with replacing_together(folder, last=SUMMARY) as temporary_for:
        for facts in _facts(content):
            copied = _place(folder / SUMMARY, facts).name
            with _beside(source / SUMMARY, facts) as file, temporary_for(copied).open("wb") as copy:
                shutil.copyfileobj(file, copy)
        _write_summary(content | {"about": check_about(about)}, temporary_for(SUMMARY))


def remove_saved(folder: Path, *, unfinished: bool = False) -> None:
    """Remove a saved evaluation, the JSON first; the folder and other files in it are kept.

    What a save left that was killed is removed too, or, if `unfinished`, alone.
    """
    try:
        for pattern in (SUMMARY, "totals*.npz", f"{PER_USER}.*"):
            stem, _, suffix = pattern.partition(".")
            hidden = f".{stem}.*.{suffix}"
            for name in [hidden] if unfinished else [pattern, hidden]:
                for file in folder.glob(name):
                    remove(file)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be removed: {error.strerror or error}") from error


def _save_table(table: pd.DataFrame, path: Path, labels: str | None) -> dict[str, Any]:
    table = table.assign(evaluated=table["evaluated"].astype(np.int64))
    flat = table.reset_index()
    if path.suffix == ".csv":
        # "\n" everywhere, so that the file and its hash are the same on every system; text in
        # quotes, or a carriage return in a label would end the line.
        flat.to_csv(path, index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    else:
        write_parquet(flat, path, index=False)
    return {
        "sha256": _digest(path),
        "rows": len(table),
        "columns": [name for name in table if name in USER_COLUMNS],
        "labels": labels,
    }


def load(path: Path) -> Saved:
    """Read what `save` wrote; see `Evaluation.load`."""
    path = path / SUMMARY if path.is_dir() else path
    while True:
        content = _read_json(path)
        try:
            return _load(path, content)
        except InvalidFileError:
            if (saved := _load_partly_moved(path)) is not None:
                return saved
            time.sleep(_MOVING)  # another process may be saving one here
            if _read_json(path)["digest"] == content["digest"]:
                raise


def _load_partly_moved(path: Path) -> Saved | None:
    """Return the evaluation of a save that was killed, or still is, between two of its files."""
    for written in path.parent.glob(f".{path.stem}.*{path.suffix}"):
        with suppress(InvalidFileError):
            content = _read_json(written)
            if not all(_hidden(written, facts).exists() for facts in _facts(content)):
                return _load(written, content)
    return None


def _hidden(written: Path, facts: dict[str, Any]) -> Path:
    """Return where a file was written that belongs to a JSON that was not moved to its place."""
    return temporary_beside(_place(written, facts), written.name.split(".")[2])


def _load(path: Path, content: dict[str, Any]) -> Saved:
    parts = {}
    for name, facts in content["totals"].items():
        with _beside(path, facts) as file:
            try:
                parts[name] = unpack(file.read())
            except InvalidDataError as error:
                raise InvalidFileError(f"does not fit {path.name}: {error}", file.name) from None
    table = values = None
    facts = content["users"]
    if facts is not None:
        with _beside(path, facts) as file:
            is_csv = file.name.endswith(".csv")
            table = _read_csv(file, list(content["per_user"])) if is_csv else read_parquet(file)
        table["user"] = table["user"].astype(str if facts["labels"] == "text" else np.int64)
        table["evaluated"] = table["evaluated"].astype(bool)
        table = table.set_index("user")
        values = UserValues(
            table.index.to_numpy(),
            table["evaluated"].to_numpy(),
            table["relevant"].to_numpy(),
            table["fingerprint"].to_numpy(),
            np.ascontiguousarray(table[list(content["per_user"])].to_numpy(np.float64).T),
        )
    # older versions did not write these
    content = {"lower": {}, "corrected": None, "seen": "exclude"} | content
    request = _request_of(content)
    numbers = {name: _saved_numbers(request, content, name or "mean") for name in parts}
    parts[""] = Part(parts[""].totals, values)
    labelled = facts is not None and facts["labels"] is not None
    return Saved(request, parts, numbers, Record(content, table), labelled)


def _saved_numbers(
    request: Request, content: dict[str, Any], column: str
) -> dict[int, SavedNumber]:
    """Return the numbers about all users, in a column of the summary, by position."""
    numbers: dict[int, SavedNumber] = {}
    for row, name in enumerate(request.names):
        if request.plans[row].per_user or request.plans[row].is_micro:
            continue  # computed from the totals again
        value = content["metrics"][name][column]
        replicates = content["replicates"][name] if column == "mean" else None
        numbers[row] = SavedNumber(
            np.nan if value is None else value,
            None if replicates is None else np.array(replicates, np.float64),
        )
    return numbers


@dataclass(frozen=True)
class _SavedRequest(Request):
    """A request for metrics some of which are not registered here, as it was saved."""

    content: dict[str, Any] = field(default_factory=dict, compare=False)

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling without formulas: the metrics may be registered elsewhere."""
        return _request_of, (self.content,)


@dataclass(frozen=True)
class _Unregistered:
    """The formula of a metric that is not registered here."""

    name: str

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise InvalidMetricError(
            f"{self.name} is not registered here as it was where it was computed; register it, as "
            "with sparse_eval.register_metric, to compute it of merged evaluations"
        )


def _request_of(content: dict[str, Any]) -> Request:
    """Return what was computed."""
    convention = convention_named(content["convention"])
    plans = tuple(_plan_of(name, convention, content) for name in content["metrics"])
    metrics = tuple(plan.metric for plan in plans)
    options = (
        metrics,
        convention,
        content["no_relevant"],
        frozenset(content["inputs_given"]),
        content["corrected"],
        content["seen"],
        (content["candidates"] or {}).get("kind") == JUDGED,
        content["without_list"],
    )
    if not any(isinstance(plan.definition.formula, _Unregistered) for plan in plans):
        return Request(*options)
    request = _SavedRequest(*options, content)
    request.__dict__["plans"] = plans
    return request


def _plan_of(name: str, convention: Convention, content: dict[str, Any]) -> Plan:
    """Return how a metric was computed; unless it is registered here, without its formula."""
    per_user = name in content["per_user"]
    try:
        (metric,) = parse(name, convention.options)
    except InvalidMetricError:  # of another package, or of one's own
        metric = None
    if metric is not None:
        plan = Plan(metric, metric.definition, convention.arguments(metric))
        if str(metric) == name and plan.per_user == per_user:
            return plan
    lower = content["lower"].get(name, 0.0)
    is_micro = re.search(r"[(,]average=micro[,)]", name) is not None
    definition = Definition(
        name,
        _Unregistered(name),
        "",
        "",
        over="statistics" if per_user or is_micro else "lists",
        per_user=per_user or is_micro,
        lower=-np.inf if lower is None else lower,
        higher_is_better=content["higher_is_better"][name],
    )
    cut = re.fullmatch(r"(.+)@([0-9]+)", name)
    metric = Metric(cut[1], int(cut[2])) if cut else Metric(name)
    return Plan(metric, definition, {"average": "micro"} if is_micro else {})


@contextmanager
def _beside(path: Path, facts: dict[str, Any]) -> Iterator[BinaryIO]:
    """Open a file that was saved with the JSON, checked by its hash.

    What is read is what was checked, also if another file is moved to its place meanwhile.
    """
    file = _place(path, facts)
    if path.name.startswith(".") and (hidden := _hidden(path, facts)).exists():
        file = hidden
    with ExitStack() as opened:
        try:
            stream = opened.enter_context(file.open("rb"))
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise InvalidFileError(
                f"cannot be read ({error.strerror}); it belongs to {path.name}, keep both together",
                file,
            ) from None
        if digest != facts["sha256"]:
            raise InvalidFileError(
                f"is not the file that {path.name} was saved with; save the evaluation again", file
            )
        stream.seek(0)
        yield stream


def _place(path: Path, facts: dict[str, Any]) -> Path:
    name: str = facts["file"]
    if not name or Path(name).name != name or "\\" in name or not name.isprintable():
        raise InvalidFileError("names no file beside it", path)
    return path.parent / name


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidFileError(f"cannot be read: {error.strerror or error}", path) from None
    except UnicodeDecodeError:
        raise InvalidFileError(
            "is not a saved evaluation; a model is scored first: sparse-eval score MODEL "
            "--out FOLDER",
            path,
        ) from None
    except (ValueError, RecursionError) as error:
        raise InvalidFileError(f"is not JSON ({error})", path) from None
    schema = content.get("schema") if isinstance(content, dict) else None
    if type(schema) is not int:
        raise InvalidFileError("is not a saved evaluation", path)
    if schema != SCHEMA:
        raise InvalidFileError(
            f"was written by another version of sparse_eval (schema {schema}, and {SCHEMA} is read "
            "here); read it with that version, or save the evaluation again",
            path,
        )
    if content.get("digest") != _signed(content)["digest"]:
        raise InvalidFileError("was changed after it was saved; save the evaluation again", path)
    return dict(content)


def _signed(content: dict[str, Any]) -> dict[str, Any]:
    """Return what is written with a digest of it, so that what is read is what was written."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True)
    return rest | {"digest": hashlib.sha256(text.encode()).hexdigest()}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_csv(file: BinaryIO, names: list[str]) -> pd.DataFrame:
    import pandas as pd

    # As text: pandas would take a user "NA" for none, and round some numbers.
    table = pd.read_csv(file, dtype=str, na_filter=False)
    for name in set(table.columns).intersection([*USER_COLUMNS, *names]):
        cells = table[name].tolist()
        if name in USER_COLUMNS:
            table[name] = np.array([int(text) for text in cells], USER_COLUMNS[name])
        else:
            table[name] = np.array([float(text or "nan") for text in cells])
    return table
