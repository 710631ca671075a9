"""The folder of a saved evaluation, file by file: JSON and Parquet, for any tool.

``summary.json`` contains the results of `Evaluation.to_dict` and `make_record`, and

- ``traits``: the name, options and cut-off of each metric, and its `Traits`; null for infinity;
- ``has_labels``: whether users have labels or are row numbers; null if they were not kept;
- ``parts``: counts and digests of the evaluation (named "") and of each baseline, see `_FACTS`;
- ``files``: the SHA-256 of each of the other files;
- ``digest``: the SHA-256 of all other keys, as JSON with sorted keys in one line.

``per_user.parquet`` has one row for each user, if their values were kept. Its columns are ``user``,
text or whole numbers; one for each metric that has values for each user, null if the user is left
out; ``evaluated``; ``listed``, whether they have a list; ``relevant``, the number of relevant
items; ``fingerprint``, a hash of them; and ``seen``, the number of training items, if known.
``baselines.parquet`` has the same of baselines, whose names are in its first column,
``evaluation``. Weights of users follow, one for each metric, if they differ.
``per_request.parquet`` has the values of requests.

``metrics.parquet`` has one row for each metric of the evaluation (``evaluation`` is "") and of each
baseline (its name): ``value``; ``n_users`` in it; ``random`` and ``random_se``; ``replicates`` of
the jackknife, except for baselines. The exact sums behind the value follow, in the units of
`Moments`, with integers as text: ``sums`` of the users' values; for micro averages, ``ratios`` has
those of each group of users. ``sample`` has the values themselves if they are few.

``lists.parquet`` has the sums behind numbers about all lists, such as coverage, for merging. Each
row is about a cut-off ``k`` and the exceptions of the convention. ``counts`` has how often each
item is listed, for each group of users; or the sums of the metric at the position ``own``.
"""

from __future__ import annotations

import io
import json
import math
from dataclasses import replace
from operator import index
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.atomic_files import make_folder, read_json, replacing_together
from ..core.exact_sums import Moments
from ..core.formatting import plain
from ..core.hashing import digest
from ..errors import InvalidFileError, OutputError
from ..inputs.candidates import JUDGED
from ..inputs.input_files import in_arrow
from ..metrics import Metric, convention_named
from ..metrics.random_baseline import Expectation
from ..metrics.request import Request, Traits
from .counts import CandidateCounts, ListSums, Retrieval, SeenCounts, Span
from .partial_results import Part, SavedNumber
from .record import SCHEMA, check_about, make_record, to_dict
from .summary import expectation
from .user_values import RequestValues, UserValues

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd
    import pyarrow as pa

    from ..core.types import Floats
    from ..metrics.random_baseline import RandomTotals
    from .partial_results import ListKey

#: The files of a saved evaluation.
SUMMARY = "summary.json"
PER_USER, METRICS, LISTS = "per_user.parquet", "metrics.parquet", "lists.parquet"
BASELINES, REQUESTS = "baselines.parquet", "per_request.parquet"
TABLES = (PER_USER, BASELINES, REQUESTS, METRICS, LISTS)

#: The attributes of a part that are in the JSON. Tuples are lists there, without their names.
_FACTS = ("key", "n_counted", "n_without_list", "span", "retrieval", "seen", "candidates")

#: The keys of the JSON that are read, and their types.
_TYPES: dict[str, Any] = {
    **dict.fromkeys(("convention", "no_relevant", "without_list", "seen"), str),
    **dict.fromkeys(("metrics", "traits", "parts", "files"), dict),
    **dict.fromkeys(("versions", "about", "inputs"), dict),
    "candidates": dict | None,
    "has_labels": bool | None,
    "digest": str,
}


class Savable(NamedTuple):
    """The saved content of an evaluation; it can be sent between processes.

    Attributes
    ----------
    content : dict
        The content of ``summary.json``.
    tables : dict of str to pyarrow.Table
        By the names of their files.
    """

    content: dict[str, Any]
    tables: dict[str, pa.Table]


class Saved(NamedTuple):
    """A saved evaluation: its parts have the names of baselines, "" for itself."""

    parts: dict[str, Part]
    record: dict[str, Any]


def savable_of(
    parts: Mapping[str, Part],
    randoms: Mapping[str, RandomTotals | None],
    summary: pd.DataFrame,
    record: dict[str, Any],
) -> Savable:
    """Return the content of an evaluation that is saved: everything but the lists.

    Parts and random baselines have the names of baselines, "" for the evaluation itself.
    """
    import pyarrow as pa

    whole = parts[""]
    request, names, values = whole.request, whole.request.names, whole.values
    content = {
        **to_dict(whole, summary),
        "traits": {
            str(metric): _plain_traits(metric, traits)
            for metric, traits in zip(request.metrics, request.traits, strict=True)
        },
        "has_labels": None if values is None else values.labels is not None,
        "parts": {
            name: {fact: getattr(part, fact) for fact in _FACTS} for name, part in parts.items()
        },
        **record,
    }
    rows = [
        _metric_row(name, part, metric, randoms[name])
        for name, part in parts.items()
        for metric in names
    ]
    lists = [
        {
            "evaluation": name,
            "every_list": every_list,
            "without_list_zero": without_list_zero,
            "k": k,
            "own": own if own < 0 else names.index(part.request.names[own]),
            "n_users": sums.n_users,
            "n_listed": sums.n_listed,
            "shape": sums.sums.shape,
            "counts": sums.sums.ravel(),
        }
        for name, part in parts.items()
        for (every_list, without_list_zero, k, own), sums in part.lists.items()
    ]
    tables = {METRICS: pa.Table.from_pylist(rows)}
    if lists:
        tables[LISTS] = pa.Table.from_pylist(lists)
    if values is not None:
        tables[PER_USER] = _tabulate_users(request, values)
    if whole.requests is not None:
        tables[REQUESTS] = _tabulate_requests(whole.requests)
    of_baselines = [
        _tabulate_users(request, part.values).add_column(0, "evaluation", [[name] * part.n_users])
        for name, part in parts.items()
        if name and part.values is not None
    ]
    if of_baselines:
        tables[BASELINES] = pa.concat_tables(of_baselines, promote_options="permissive")
    return Savable(content, tables)


def _plain_traits(metric: Metric, traits: Traits) -> dict[str, Any]:
    return {
        "name": metric.name,
        "options": dict(metric.options),
        "cutoff": metric.cutoff,
        **{key: plain(value) for key, value in traits._asdict().items()},
    }


def _metric_row(name: str, part: Part, metric: str, totals: RandomTotals | None) -> dict[str, Any]:
    row = part.row_of(metric)
    random, error = expectation(part, totals, row) or (None, None)
    has_replicates = not name and not part.request.traits[row].per_user
    return {
        "evaluation": name,
        "metric": metric,
        "value": float(part.value(row)),
        "n_users": part.count(row),
        "random": random,
        "random_se": error,
        "replicates": part.replicates(row) if has_replicates else None,
        "sums": _plain_sums(part.sums(row)),
        "sample": part.sample(row),
        "ratios": [list(map(_plain_sums, pair)) for pair in part.ratios.get(row, ())],
    }


def _plain_sums(moments: Moments) -> dict[str, Any]:
    # The integers have too many digits for a column of numbers.
    return moments._asdict() | {"total": str(moments.total), "squares": str(moments.squares)}


def _tabulate_users(request: Request, values: UserValues) -> pa.Table:
    import pyarrow as pa

    columns = {
        "evaluated": values.counted,
        "listed": values.has_list,
        "relevant": values.n_relevant,
        "fingerprint": values.fingerprints,
        **({} if values.n_seen is None else {"seen": values.n_seen}),
    }
    if values.weights is not None:
        columns |= {f"weight {number}": one for number, one in enumerate(values.weights, 1)}
    arrays = [values.user_ids, *values.columns, *columns.values()]
    metrics = [
        name for name, one in zip(request.names, request.traits, strict=True) if one.per_user
    ]
    # Not by name: a metric of the user may be called "seen".
    return pa.Table.from_arrays(
        [pa.array(array, from_pandas=True) for array in arrays], ["user", *metrics, *columns]
    )


def save(folder: Path, savable: Savable, about: Mapping[str, Any] | None) -> str:
    """Write the files of an evaluation, and return the digest of the JSON.

    All are written before one is moved to its place, and the JSON is moved last: a folder without
    it holds no evaluation.
    """
    from pyarrow import parquet

    content = dict(savable.content)
    if about is not None:
        content["about"] = check_about(about)
    files = {}
    for name, table in savable.tables.items():
        stream = io.BytesIO()
        parquet.write_table(table, stream, compression="zstd")
        files[name] = stream.getvalue()
    content["files"] = {name: digest(data) for name, data in files.items()}
    content["digest"] = _digest(content)
    text = json.dumps(content, indent=2, allow_nan=False, default=index) + "\n"
    folder = make_folder(folder)
    with replacing_together(folder, last=SUMMARY) as temporary_for:
        for name, data in files.items():
            temporary_for(name).write_bytes(data)
        temporary_for(SUMMARY).write_bytes(text.encode())
    for name in set(TABLES) - files.keys():  # of the evaluation that was there
        (folder / name).unlink(missing_ok=True)
    return str(content["digest"])


def remove_saved(folder: Path) -> None:
    """Remove a saved evaluation, the JSON first; the folder and other files in it are kept."""
    try:
        for name in (SUMMARY, *TABLES):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be removed: {error.strerror or error}") from error


def summaries_in(folder: Path) -> list[Path]:
    """Return the summaries of the evaluations that are saved in folders of a folder."""
    return sorted(folder.glob(f"*/{SUMMARY}"))


def read_summary(path: Path) -> dict[str, Any]:
    """Return the JSON of a saved evaluation, or raise `InvalidFileError`."""
    content: dict[str, Any] = read_json(
        path,
        ["schema", "sparse_eval"],
        "is not a saved evaluation. For a model, run first: sparse-eval score MODEL --out FOLDER",
    )
    if content["schema"] != SCHEMA:
        raise InvalidFileError(
            "was written in another version of the format, which this package cannot read; "
            "evaluate again, and save that",
            path,
        )
    for key, kind in _TYPES.items():
        if key not in content or not isinstance(content[key], kind):
            fault = "has the wrong type" if key in content else "is missing"
            raise InvalidFileError(f"its key {key!r} {fault}; save the evaluation again", path)
    if content["digest"] != _digest(content):
        raise InvalidFileError("was changed after it was saved; save the evaluation again", path)
    return content


def _digest(content: dict[str, Any]) -> str:
    """Return a digest of the other keys, to detect changes when they are read."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, default=index)
    return digest(text)


def read_saved(path: Path) -> Savable:
    """Return the content of a folder, or of the JSON in it and the files next to that.

    Raises `InvalidFileError` if a file cannot be read, was changed, or was exchanged.
    """
    from pyarrow import parquet

    path = path / SUMMARY if path.is_dir() else path
    content = read_summary(path)
    tables = {}
    for name, expected in content["files"].items():
        file = path.parent / name
        try:
            data = file.read_bytes()
        except OSError as error:
            raise InvalidFileError(
                f"cannot be read ({error.strerror}). It belongs to {SUMMARY}; keep both together",
                file,
            ) from None
        if digest(data) != expected:
            raise InvalidFileError(
                f"is not the file that {SUMMARY} was saved with; save the evaluation again", file
            )
        tables[name] = parquet.ParquetFile(in_arrow(data)).read()  # names may occur twice
    return Savable(content, tables)


def load(path: Path) -> Saved:
    """Return a saved evaluation. Its metrics need not be registered."""
    content, tables = read_saved(path)
    request = _request_of(content)
    rows = tables[METRICS].to_pylist()
    parts = {}
    for name, facts in content["parts"].items():
        own = [row for row in rows if row["evaluation"] == name]
        lists = _lists_of(tables[LISTS], name) if LISTS in tables else {}
        parts[name] = _part_of(request, facts, own, lists)
    if PER_USER in tables:
        values = _values_of(tables[PER_USER], request, content["has_labels"])
        requests = _requests_of(tables[REQUESTS]) if REQUESTS in tables else None
        parts[""] = replace(parts[""], values=values, requests=requests)
    if BASELINES in tables:
        table = tables[BASELINES]
        names = table["evaluation"].to_numpy()
        for name in set(names):
            own = table.filter(names == name).remove_column(0)
            values = _values_of(own, request, content["has_labels"])
            parts[name] = replace(parts[name], values=values)
    return Saved(parts, {key: content[key] for key in make_record(None)})


def _request_of(content: dict[str, Any]) -> Request:
    metrics, traits = [], []
    for entry in content["traits"].values():
        metrics.append(Metric(entry["name"], entry["cutoff"], tuple(entry["options"].items())))
        lower = -math.inf if entry["lower"] is None else entry["lower"]
        upper = math.inf if entry["upper"] is None else entry["upper"]
        known = Traits(*(entry[name] for name in Traits._fields))
        traits.append(known._replace(lower=lower, upper=upper))
    return Request(
        tuple(metrics),
        convention_named(content["convention"]),
        content["no_relevant"],
        frozenset(),
        content["seen"],
        (content["candidates"] or {}).get("kind") == JUDGED,
        content["without_list"],
        tuple(traits),
    )


def _part_of(
    request: Request,
    facts: dict[str, Any],
    rows: list[dict[str, Any]],
    lists: dict[ListKey, ListSums],
) -> Part:
    ratios = {
        number: tuple((_moments_of(above), _moments_of(below)) for above, below in row["ratios"])
        for number, row in enumerate(rows)
        if row["ratios"]
    }
    kinds: dict[str, Any] = {
        "retrieval": Retrieval,
        "seen": SeenCounts,
        "candidates": CandidateCounts,
    }
    saved = {
        number: SavedNumber(row["value"], row["n_users"], _floats_of(row["replicates"]))
        for number, row in enumerate(rows)
        if not request.traits[number].per_user or facts["key"].get("weighted")
    }
    return Part(
        request,
        key=facts["key"] | {"metrics": tuple(facts["key"]["metrics"])},
        span=Span(*facts["span"]),
        n_counted=facts["n_counted"],
        n_without_list=facts["n_without_list"],
        moments=tuple(_moments_of(row["sums"]) for row in rows),
        samples=tuple(_floats_of(row["sample"]) for row in rows),
        ratios=ratios,
        lists=lists,
        first_ranks=None,
        random=tuple(
            None if row["random"] is None else Expectation(row["random"], row["random_se"])
            for row in rows
        ),
        saved=saved,
        **{name: facts[name] and kind(*facts[name]) for name, kind in kinds.items()},
    )


def _moments_of(sums: dict[str, Any]) -> Moments:
    return Moments(**sums | {"total": int(sums["total"]), "squares": int(sums["squares"])})


def _floats_of(values: list[float] | None) -> Floats | None:
    return None if values is None else np.array(values, np.float64)


def _lists_of(table: pa.Table, name: str) -> dict[ListKey, ListSums]:
    lists = {}
    for number, row in enumerate(table.drop_columns(["counts"]).to_pylist()):
        if row["evaluation"] == name:
            key = (row["every_list"], row["without_list_zero"], row["k"], row["own"])
            counts = table["counts"][number].values.to_numpy().reshape(row["shape"])
            lists[key] = ListSums(np.array(row["n_users"]), np.array(row["n_listed"]), counts)
    return lists


def _values_of(table: pa.Table, request: Request, has_labels: bool) -> UserValues:
    users, *arrays = (column.to_numpy() for column in table.columns)
    n_metrics = sum(traits.per_user for traits in request.traits)
    evaluated, listed, relevant, fingerprints = arrays[n_metrics : n_metrics + 4]
    columns = np.array(arrays[:n_metrics], np.float64).reshape(n_metrics, len(table))
    known = (evaluated, listed, relevant, fingerprints)
    more = {
        table.column_names[row]: table.column(row).to_numpy()
        for row in range(n_metrics + 5, table.num_columns)
        if not table.column(row).null_count  # null if only another baseline has them
    }
    seen = more.pop("seen", None)
    weights = np.array([*more.values()], np.float64) if more else None
    return UserValues(users, *known, columns, seen, has_labels, weights)


def _tabulate_requests(requests: RequestValues) -> pa.Table:
    import pyarrow as pa

    known = {"user": requests.users, "request": requests.requests, "evaluated": requests.counted}
    known |= {"weight": requests.weights}
    names = [*known, *(f"metric {number}" for number in range(1, len(requests.columns) + 1))]
    arrays = [*known.values(), *requests.columns]
    return pa.Table.from_arrays([pa.array(array, from_pandas=True) for array in arrays], names)


def _requests_of(table: pa.Table) -> RequestValues:
    users, requests, counted, weights, *columns = (one.to_numpy() for one in table.columns)
    return RequestValues(requests, users, np.array(columns, np.float64), weights, counted)
