"""Saved evaluations: a folder with all but the lists, readable by people and by other programs.

``summary.json`` holds what `Evaluation.to_dict` returns, and

- ``users``: the table's file, its SHA-256, its number of rows, its ``columns`` before those of
  the metrics, and whether ``labels`` are "text", "integer" or null, the users then being row
  numbers;
- ``per_user``: the metrics that have a column; ``replicates``: of every other metric, its
  bootstrap replicates; ``higher_is_better``: which way each metric is better;
- ``by``: means by "activity" and "popularity", where training data were given;
  ``precision_recall``, at some ranks; ``concentration``: the Lorenz curve of how often items are
  recommended, where whole lists are known; ``examples``: users in depth (null: not known);
- ``versions`` of the libraries; ``inputs``: shape, entries and SHA-256 of each;
- ``about``: what the caller wanted to be remembered;
- ``digest``: SHA-256 of all that, as JSON with sorted keys in one line.

``per_user.csv`` or ``per_user.parquet`` has one row for each user: ``user``; ``evaluated``, 1 or
0; ``relevant``, the number of relevant items; ``fingerprint``, which stands for them; ``seen``,
the number of training items, where it is known; and a column for each metric, empty (null) where
the user is left out. Numbers are written in full.
"""

from __future__ import annotations

import csv
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..core.files import make_folder, need_pyarrow, replacing, write_parquet
from ..core.formatting import as_html, number
from ..errors import InvalidDataError, InvalidFileError, InvalidMetricError
from .comparison import Comparison, Scored, compare

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["SCHEMA", "SavedEvaluation", "check_about", "load_evaluation"]

#: Version of what `Evaluation.to_json` and `Evaluation.save` write. A newer one may mean something
#: else by the same keys.
SCHEMA = 1

#: The files of a saved evaluation, the second with a suffix.
SUMMARY, PER_USER = "summary.json", "per_user"

_KINDS = ("csv", "parquet")

#: Types of the columns of the table that are no metric's.
_TYPES: dict[str, Any] = {
    "evaluated": np.int64,
    "relevant": np.int64,
    "fingerprint": np.uint64,
    "seen": np.int64,
}


@dataclass(frozen=True, eq=False, repr=False)
class SavedEvaluation:
    """An evaluation without its lists, as it is saved.

    Attributes
    ----------
    content : dict
        What ``summary.json`` holds, see `sparse_eval.results.saved`; ``users`` once it is saved.
    table : pandas.DataFrame
        One row for each user, indexed by label or row number: ``evaluated``, ``relevant``,
        ``fingerprint``, ``seen`` where it is known, and the metrics.
    labelled : bool
        Whether the index holds labels.
    path : Path or None
        Where it was loaded from.
    """

    content: dict[str, Any]
    table: pd.DataFrame
    labelled: bool
    path: Path | None = None

    @property
    def names(self) -> list[str]:
        """The metrics, in the order they were asked for."""
        return list(self.content["metrics"])

    @property
    def users(self) -> pd.Index[Any] | None:
        """The users' labels, None where they are row numbers."""
        return self.table.index if self.labelled else None

    @property
    def counted(self) -> NDArray[np.bool_]:
        """Say of each user whether it was evaluated."""
        return self.table["evaluated"].to_numpy()

    @property
    def n_relevant(self) -> NDArray[np.int64]:
        """Relevant items of each user."""
        return self.table["relevant"].to_numpy()

    @property
    def fingerprints(self) -> NDArray[np.uint64]:
        """A number for each user that stands for its relevant items and their gains."""
        return self.table["fingerprint"].to_numpy()

    @property
    def convention(self) -> str:
        """The name of the convention."""
        return str(self.content["convention"])

    @property
    def no_relevant(self) -> str:
        """What was done with users without relevant items."""
        return str(self.content["no_relevant"])

    @property
    def about(self) -> dict[str, Any]:
        """What was to be remembered."""
        return dict(self.content["about"])

    @property
    def per_user(self) -> pd.DataFrame:
        """One row for each user (index ``user``), one column for each metric with such values."""
        return self.table[list(self.content["per_user"])]

    def is_per_user(self, name: str) -> bool:
        """Say whether a metric has a value for each user."""
        self._check(name)
        return name in self.content["per_user"]

    def higher_is_better(self, name: str) -> bool:
        """Say which way a metric is better."""
        self._check(name)
        return bool(self.content["higher_is_better"][name])

    def values(self, name: str) -> NDArray[np.float64]:
        """Return one metric of every user, NaN for one that is left out."""
        if not self.is_per_user(name):
            raise InvalidMetricError(f"{name} is one number for all users together")
        return self.table[name].to_numpy()

    def replicates(self, name: str) -> NDArray[np.float64]:
        """Return the bootstrap replicates of a number about all users together."""
        if self.is_per_user(name):
            raise InvalidMetricError(f"{name} has a value for each user")
        return np.array(self.content["replicates"][name], np.float64)

    def __getitem__(self, name: str) -> float:
        """Return the mean of a metric over the evaluated users, or its one number."""
        self._check(name)
        mean = self.content["metrics"][name]["mean"]
        return float("nan") if mean is None else float(mean)

    def mean(self) -> dict[str, float]:
        """Return the mean of every metric, or its one number."""
        return {name: self[name] for name in self.names}

    def summary(self) -> pd.DataFrame:
        """Return the table that `Evaluation.summary` made when it was saved."""
        import pandas as pd

        table = pd.DataFrame.from_dict(self.content["metrics"], orient="index")
        numbers = table.columns.drop(["interval", "n_users", "n_skipped"])
        table[numbers] = table[numbers].astype(np.float64)
        return table.rename_axis("metric")

    def compare(
        self,
        other: Scored,
        metrics: str | Iterable[str] | None = None,
        *,
        names: tuple[str, str] = ("this", "other"),
        **options: Any,
    ) -> Comparison:
        """Compare with another evaluation of the same users, as `Evaluation.compare` does."""
        return compare(dict(zip(names, (self, other), strict=True)), metrics, **options)

    def save(self, folder: str | Path, users: Literal["csv", "parquet"] = "csv") -> Path:
        """Write the table of users, then the JSON that names it; see `Evaluation.save`."""
        if users not in _KINDS:
            raise InvalidDataError(f"users is {users!r}; expected 'csv' or 'parquet'")
        labels = _kind_of(self.table.index) if self.labelled else None
        json.dumps(self.content, allow_nan=False)  # before anything that is there is replaced
        folder = make_folder(folder)
        beside = folder / f"{PER_USER}.{users}"
        table = self.table.assign(evaluated=self.counted.astype(np.int64)).reset_index()
        with replacing(beside) as temporary:
            if users == "csv":
                # "\n" everywhere, so that the file and its hash are the same on every system; text
                # in quotes, or a carriage return in a label would end the line.
                table.to_csv(
                    temporary, index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
                )
            else:
                write_parquet(table, temporary, index=False)
            facts = {
                "file": beside.name,
                "sha256": _digest(temporary),
                "rows": len(table),
                "columns": [name for name in self.table if name in _TYPES],
                "labels": labels,
            }
        content = _signed(self.content | {"users": facts})
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        with replacing(folder / SUMMARY) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return folder

    def _check(self, name: str) -> None:
        if name not in self.content["metrics"]:
            raise InvalidMetricError(
                f"{name!r} was not evaluated; there are {', '.join(self.names)}"
            )

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {self[name]:.4f}" for name in self.names[:4])
        more = f", and {len(self.names) - 4} more" if len(self.names) > 4 else ""
        return f"<SavedEvaluation: {self.content['n_users']} users; {shown}{more}>"

    def _repr_html_(self) -> str:
        heading = f"Saved evaluation: {self.content['n_users']:,} users"
        table = self.summary()[["mean", "ci_low", "ci_high", "n_users"]]
        return as_html(heading, table.map(_cell), index=True, where=".summary()")


def _cell(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else number(value)


def check_about(about: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what is to be remembered as JSON gives it back, or raise `InvalidDataError`."""
    try:
        found = json.loads(json.dumps(dict(about or {}), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidDataError(
            f"about holds what JSON cannot ({error}); give text, numbers, lists and dicts by name"
        ) from None
    return dict(found)


def load_evaluation(path: str | Path) -> SavedEvaluation:
    """Read what `Evaluation.save` wrote.

    Parameters
    ----------
    path : str or Path
        The folder, or the JSON in it.

    Returns
    -------
    SavedEvaluation
        To be compared and reported like an `Evaluation`; the lists are not saved.

    Raises
    ------
    InvalidFileError
        If a file cannot be read, is something else, was written by a newer version, or the table
        is not the one that was saved.
    MissingExtraError
        If the table is Parquet and pyarrow is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> ev = se.evaluate(se.Rankings.from_topk([[0, 1], [1, 0]]), csr_matrix([[1, 0], [1, 0]]),
    ...                  "mrr@2")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     saved = se.load_evaluation(ev.save(Path(folder) / "als", about={"seed": 1}))
    >>> saved.mean(), saved.about
    ({'mrr@2': 0.75}, {'seed': 1})
    """
    path = Path(path)
    path = path / SUMMARY if path.is_dir() else path
    content = _read_json(path)
    facts = content["users"]
    beside = path.parent / facts["file"]
    try:
        digest = _digest(beside)
    except OSError as error:
        raise InvalidFileError(
            f"cannot be read ({error.strerror}); it belongs to {path.name}, keep both together",
            beside,
        ) from None
    if digest != facts["sha256"]:
        raise InvalidFileError(
            f"is not the table that {path.name} was saved with; save the evaluation again", beside
        )
    names = list(content["per_user"])
    table = _read_csv(beside, names) if beside.suffix == ".csv" else _read_parquet(beside)
    if list(table.columns) != ["user", *facts["columns"], *names] or len(table) != facts["rows"]:
        raise InvalidFileError(f"has other columns or rows than {path.name} says", beside)
    table["user"] = table["user"].astype(str if facts["labels"] == "text" else np.int64)
    table["evaluated"] = table["evaluated"].astype(bool)
    return SavedEvaluation(content, table.set_index("user"), facts["labels"] is not None, path)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidFileError(f"cannot be read: {error.strerror or error}", path) from None
    except UnicodeDecodeError:
        raise InvalidFileError(
            "is no saved evaluation; a model is scored first: sparse-eval score MODEL --out FOLDER",
            path,
        ) from None
    except (ValueError, RecursionError) as error:
        raise InvalidFileError(f"is no JSON ({error})", path) from None
    if not isinstance(content, dict):
        raise InvalidFileError("is no saved evaluation", path)
    schema = content.get("schema")
    if not isinstance(schema, int) or isinstance(schema, bool):
        raise InvalidFileError("is no saved evaluation", path)
    if schema > SCHEMA:
        raise InvalidFileError(
            f"was written by a newer sparse_eval (schema {schema}, {SCHEMA} can be read here); "
            "upgrade with pip install -U sparse_eval",
            path,
        )
    if "digest" not in content:
        raise InvalidFileError(
            "is no saved evaluation, though it looks like one; save with Evaluation.save", path
        )
    if content["digest"] != _signed(content)["digest"]:
        raise InvalidFileError("was changed after it was saved; save the evaluation again", path)
    name = content["users"]["file"]
    if not name or Path(name).name != name or "\\" in name or not name.isprintable():
        raise InvalidFileError("names no file beside it as the table of users", path)
    return content


def _signed(content: dict[str, Any]) -> dict[str, Any]:
    """Return what is written with a digest of it, so that what is read is what was written."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True)
    return rest | {"digest": hashlib.sha256(text.encode()).hexdigest()}


def _kind_of(labels: pd.Index[Any]) -> str:
    listed = labels.tolist()
    if all(isinstance(label, str) for label in listed):
        return "text"
    if all(isinstance(label, int) and not isinstance(label, bool) for label in listed):
        if max(listed) >= 2**63 or min(listed) < -(2**63):
            raise InvalidDataError(
                "the users' labels do not fit into 64 bits with a sign; make them text, as with "
                "map(str, labels)"
            )
        return "integer"
    raise InvalidDataError(
        "the users' labels are neither all text nor all whole numbers; make them so, as with "
        "map(str, labels)"
    )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_csv(path: Path, names: list[str]) -> pd.DataFrame:
    import pandas as pd

    try:
        # As text: pandas would take a user "NA" for none, and round some numbers.
        table = pd.read_csv(path, dtype=str, na_filter=False)
        for name in set(table.columns).intersection([*_TYPES, *names]):
            cells = table[name].tolist()
            if name in _TYPES:
                table[name] = np.array([int(text) for text in cells], _TYPES[name])
            else:
                table[name] = np.array([float(text or "nan") for text in cells])
    except ValueError as error:
        raise InvalidFileError(f"is no table of users ({error})", path) from None
    return table


def _read_parquet(path: Path) -> pd.DataFrame:
    import pandas as pd

    need_pyarrow()
    try:
        return pd.read_parquet(path)
    except ValueError as error:  # as pyarrow's own errors are
        raise InvalidFileError(f"is no table of users ({error})", path) from None
