"""Write and read the folder of a saved evaluation, for people and other programs too.

``summary.json`` contains the results of `Evaluation.to_dict` and `make_record`, and

- ``files``: the SHA-256 of each of the other files;
- ``labels``: the type of the users' labels, "text" or "integer"; null if users are row numbers or
  were not kept;
- ``per_user``: the metrics that have a column; ``higher_is_better``: which way each metric is
  better; ``lower`` and ``upper``: the smallest and the largest value that it can take, null for
  infinity;
  ``inputs_given``: which of train, item_groups, item_vectors, propensity and candidates it was
  computed from;
- ``digest``: SHA-256 of all other keys, as JSON with sorted keys in one line.

``per_user.csv`` or ``per_user.parquet`` exists if the values of the users were kept, and has one
row for each user. Its columns are ``user``; ``evaluated``, 1 or 0; ``relevant``, the number of
relevant items; ``fingerprint``, a hash of them; ``seen``, the number of training items, if known. A
column for each metric follows, empty (null) if the user is left out. Numbers are written in full.

``totals.npz`` has the exact sums of the evaluation and of its baselines, see `parts`. All numbers
are computed from them again.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn

import numpy as np

from ..core.arguments import check_choice
from ..core.files import make_folder, read_json, replacing_together
from ..core.formatting import plain
from ..errors import InvalidDataError, InvalidFileError, InvalidMetricError, OutputError
from ..inputs.candidates import JUDGED
from ..inputs.files import in_arrow
from ..metrics import Definition, Metric, convention_named, parse
from ..metrics.plan import Plan
from ..metrics.registry import Formula
from ..metrics.request import Request
from .details import SCHEMA, check_about, make_record
from .parts import UserValues, pack, unpack

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pyarrow as pa

    from ..metrics import Convention
    from .parts import Part

#: The files of a saved evaluation, the last with a suffix.
SUMMARY, TOTALS, PER_USER = "summary.json", "totals.npz", "per_user"


class Savable(NamedTuple):
    """The saved content of an evaluation; it can be sent between processes.

    Attributes
    ----------
    content : dict
        The content of ``summary.json``, without the digests.
    parts : dict of str to Part
        By name of the baseline, "" for the evaluation itself.
    table : pyarrow.Table or None
        One row for each user, None if their values were not kept.
    """

    content: dict[str, Any]
    parts: dict[str, Part]
    table: pa.Table | None


def facts_of(evaluation: Any) -> dict[str, Any]:
    """Return facts for reading unregistered metrics, and the labels, of a saved evaluation."""
    plans = dict(zip(evaluation.names, evaluation.request.plans, strict=True))
    labels = None
    if evaluation._has_values and evaluation._values.labels is not None:
        labels = "text" if evaluation._values.user_ids.dtype == object else "integer"
    return {
        "inputs_given": sorted(evaluation.request.inputs),
        "per_user": [name for name, plan in plans.items() if plan.per_user],
        "higher_is_better": {
            name: plan.definition.higher_is_better for name, plan in plans.items()
        },
        "lower": {name: plain(plan.definition.range[0]) for name, plan in plans.items()},
        "upper": {name: plain(plan.upper) for name, plan in plans.items()},
        "labels": labels,
    }


def table_of(evaluation: Any) -> pa.Table:
    """Return the saved table of users."""
    import pyarrow as pa

    values = evaluation._values
    columns = {
        "user": values.user_ids,
        "evaluated": values.counted.astype(np.int64),
        "relevant": values.n_relevant,
        "fingerprint": values.fingerprints,
        **({} if values.n_seen is None else {"seen": values.n_seen}),
        **dict(zip(facts_of(evaluation)["per_user"], values.columns, strict=True)),
    }
    return pa.table({name: pa.array(column, from_pandas=True) for name, column in columns.items()})


def save(
    folder: Path,
    savable: Savable,
    table_kind: Literal["csv", "parquet"],
    about: Mapping[str, Any] | None,
) -> Path:
    """Write the sums, the table and the JSON; see `Evaluation.save`.

    All are written before one is moved to its place, and the JSON is moved last: a folder without
    it holds no evaluation.
    """
    check_choice("table", table_kind, ["csv", "parquet"])
    content = savable.content
    if about is not None:
        content = content | {"about": check_about(about)}
    files = {TOTALS: pack(savable.parts)}
    if savable.table is not None:
        from pyarrow import csv, parquet

        stream = io.BytesIO()
        (csv.write_csv if table_kind == "csv" else parquet.write_table)(savable.table, stream)
        files[f"{PER_USER}.{table_kind}"] = stream.getvalue()
    folder = make_folder(folder)
    _write(folder, content, files)
    for name in _TABLES:  # of the evaluation that was there
        if name not in files:
            (folder / name).unlink(missing_ok=True)
    return folder


_TABLES = (f"{PER_USER}.csv", f"{PER_USER}.parquet")


def _write(folder: Path, content: dict[str, Any], files: Mapping[str, bytes]) -> None:
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    text = json.dumps(_signed(content | {"files": digests}), indent=2, allow_nan=False) + "\n"
    with replacing_together(folder, last=SUMMARY) as temporary_for:
        for name, data in files.items():
            temporary_for(name).write_bytes(data)
        temporary_for(SUMMARY).write_bytes(text.encode())


def copy_saved(source: Path, folder: Path, about: Mapping[str, Any]) -> None:
    """Copy a saved evaluation to another folder, with a different `about`."""
    content = read_summary(source / SUMMARY)
    files = read_files(source, content)
    _write(make_folder(folder), content | {"about": check_about(about)}, files)


def remove_saved(folder: Path, *, unfinished: bool = False) -> None:
    """Remove a saved evaluation, the JSON first; the folder and other files in it are kept.

    It also removes files of a save that was killed, or only these if `unfinished`.
    """
    try:
        for name in (SUMMARY, TOTALS, *_TABLES):
            stem, _, suffix = name.partition(".")
            for pattern in ([] if unfinished else [name]) + [f".{stem}.*.{suffix}"]:
                for file in folder.glob(pattern):
                    file.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be removed: {error.strerror or error}") from error


def load(path: Path) -> tuple[Request, dict[str, Part], dict[str, Any]]:
    """Return the request, the parts by name of the baseline, and the record."""
    path = path / SUMMARY if path.is_dir() else path
    content = read_summary(path)
    try:
        return _load(path, content)
    except InvalidFileError:
        again = read_summary(path)  # another process may have saved one here
        if again["digest"] == content["digest"]:
            raise
        return _load(path, again)


def _load(path: Path, content: dict[str, Any]) -> tuple[Request, dict[str, Part], dict[str, Any]]:
    files = read_files(path.parent, content)
    try:
        parts: dict[str, Part] = unpack(files[TOTALS])
    except InvalidDataError as error:
        raise InvalidFileError(f"does not fit {path.name}: {error}", path.parent / TOTALS) from None
    for name in _TABLES:
        if name in files:
            parts[""] = replace(parts[""], values=_read_values(files[name], name, content))
    return _request_of(content), parts, {key: content[key] for key in make_record(None)}


def _read_values(data: bytes, name: str, content: dict[str, Any]) -> UserValues:
    import pyarrow as pa
    from pyarrow import csv, parquet

    is_text = content["labels"] == "text"
    if name.endswith(".csv"):
        types = {"user": pa.string() if is_text else pa.int64(), "fingerprint": pa.uint64()}
        types |= dict.fromkeys(content["per_user"], pa.float64())
        table = csv.read_csv(
            in_arrow(data),
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types=types),
        )
    else:
        table = parquet.read_table(in_arrow(data))
    users = table["user"]
    columns = [table[metric].to_numpy() for metric in content["per_user"]]
    return UserValues(
        np.array(users.to_pylist(), object) if is_text else users.to_numpy(),
        table["evaluated"].to_numpy() == 1,
        table["relevant"].to_numpy(),
        table["fingerprint"].to_numpy(),
        np.array(columns, np.float64).reshape(len(columns), len(table)),
        table["seen"].to_numpy() if "seen" in table.column_names else None,
        content["labels"] is not None,
    )


@dataclass(frozen=True)
class _SavedRequest(Request):
    """A saved request with metrics that are not registered in this process."""

    content: dict[str, Any] = field(default_factory=dict, compare=False)

    @cached_property
    def plans(self) -> tuple[Plan, ...]:
        """How each metric was computed."""
        return tuple(_plan_of(name, self.convention, self.content) for name in self.names)

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling without formulas: the metrics may be registered elsewhere."""
        return _request_of, (self.content,)


@dataclass(frozen=True)
class _Unregistered:
    """The formula of a metric that is not registered in this process."""

    name: str

    def __call__(self, *_: Any, **__: Any) -> NoReturn:
        raise InvalidMetricError(
            f"{self.name} is not registered with the formula that computed it. Register it "
            "with sparse_eval.register_metric to compute it for merged evaluations"
        )


def _request_of(content: dict[str, Any]) -> Request:
    """Return the saved request."""
    convention = convention_named(content["convention"])
    plans = tuple(_plan_of(name, convention, content) for name in content["metrics"])
    metrics = tuple(plan.metric for plan in plans)
    options = (
        metrics,
        convention,
        content["no_relevant"],
        frozenset(content["inputs_given"]),
        content["seen"],
        (content["candidates"] or {}).get("kind") == JUDGED,
        content["without_list"],
    )
    if not any(isinstance(plan.definition.formula.function, _Unregistered) for plan in plans):
        return Request(*options)
    return _SavedRequest(*options, content)


def _plan_of(name: str, convention: Convention, content: dict[str, Any]) -> Plan:
    """Return the plan of a saved metric, without its formula if it is not registered here."""
    per_user = name in content["per_user"]
    try:
        (metric,) = parse(name, convention.options)
    except InvalidMetricError:  # a metric of another package or of the user
        metric = None
    if metric is not None:
        plan = Plan(metric, metric.definition, convention.arguments(metric))
        if str(metric) == name and plan.per_user == per_user:
            return plan
    lower = content["lower"][name]
    upper = content.get("upper", {name: 1.0})[name]  # earlier versions have only the lower end
    is_micro = re.search(r"[(,]average=micro[,)]", name) is not None
    definition = Definition(
        name,
        Formula(_Unregistered(name)),
        "",
        "",
        over="statistics" if per_user or is_micro else "lists",
        per_user=per_user or is_micro,
        range=(-np.inf if lower is None else lower, np.inf if upper is None else upper),
        higher_is_better=content["higher_is_better"][name],
    )
    cut = re.fullmatch(r"(.+)@([0-9]+)", name)
    metric = Metric(cut[1], int(cut[2])) if cut else Metric(name)
    return Plan(metric, definition, {"average": "micro"} if is_micro else {})


def read_files(folder: Path, content: Mapping[str, Any]) -> dict[str, bytes]:
    """Return the files that were saved with the JSON, which are compared with their digests."""
    files: dict[str, bytes] = {}
    for name in (TOTALS, *_TABLES):
        if name not in content["files"]:
            continue
        file = folder / name
        try:
            files[name] = file.read_bytes()
        except OSError as error:
            raise InvalidFileError(
                f"cannot be read ({error.strerror}). It belongs to {SUMMARY}; keep both together",
                file,
            ) from None
        if hashlib.sha256(files[name]).hexdigest() != content["files"][name]:
            raise InvalidFileError(
                f"is not the file that {SUMMARY} was saved with; save the evaluation again", file
            )
    return files


def read_summary(path: Path) -> dict[str, Any]:
    """Return the JSON of a saved evaluation, or raise `InvalidFileError`."""
    content: dict[str, Any] = read_json(
        path,
        ["schema", "sparse_eval"],
        "is not a saved evaluation. For a model, run first: sparse-eval score MODEL --out FOLDER",
    )
    if content["schema"] != SCHEMA:
        raise InvalidFileError(
            f"was written by sparse_eval {content['sparse_eval']}, in a format that this version "
            "cannot read. Read it with that version, or save the evaluation again",
            path,
        )
    if content.get("digest") != _signed(content)["digest"]:
        raise InvalidFileError("was changed after it was saved; save the evaluation again", path)
    return content


def _signed(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content with its digest, to detect changes when it is read."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True)
    return rest | {"digest": hashlib.sha256(text.encode()).hexdigest()}
