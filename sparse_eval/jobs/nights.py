"""Nights: score the new checkpoints, judge the best by rules, and record every decision.

The ledger ``gate.jsonl`` (see `sparse_eval.jobs.ledger`) has a row for each night; its slot is the
date. The last row is the state. It is written at once, so a killed night leaves either the whole
row or none. A row has

- ``candidate``, ``champion`` and ``reference``, the checkpoints that were compared, each with
  ``file`` and ``sha256``; without another reference, this is the champion;
- ``next``, the ``champion`` and ``reference`` of later nights; ``promoted``, and ``named`` if the
  next champion was named instead;
- ``verdict``, ``rules`` (a digest), ``alpha``, ``tests`` and ``notes``, as in `Decision.to_dict`;
- ``scored``, the SHA-256 of all checkpoints of the night, which later nights do not judge again;
- ``inputs``, digests of the data and the metrics; ``metrics``, for each of the three models its
  metrics with ``mean``, ``ci_low`` and ``ci_high``; ``time`` in UTC.

A night has no verdict if its champion was named and nothing has been decided yet.
"""

from __future__ import annotations

import shutil
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

from ..core.atomic_files import locked_folder, make_folder
from ..core.hashing import digest_file
from ..core.messages import warn
from ..datasets.split.parts import training_part
from ..datasets.times import Clock
from ..errors import InvalidDataError, InvalidFileError, shown
from ..models.checkpoints import read_checkpoint
from ..models.opening import as_model
from ..models.trained_on import has_other_data
from ..results import Evaluation
from ..results.gate import gate
from ..results.gate_rules import Rules
from ..results.record import plain_rows
from .ledger import INPUTS, LINE, Ledger, differences
from .scoring import Scoring, best_of, parse_monitored
from .sweep import JOB as SWEEP
from .sweep import list_checkpoints, natural, path_of, saved_evaluations, sweep

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pandas as pd

    from ..core.types import PathLike
    from ..datasets.split import Holdout
    from ..metrics import Metric
    from ..results.gate import Decision
    from .ledger import Row

#: The kind of job; the ledger is named after it.
JOB = "gate"

#: How a choice of candidate begins, such as "best of ndcg@10", unless it is "newest".
_BEST = "best of "

#: What to do if a checkpoint is missing or has changed.
_INSTEAD = {
    "candidate": "repeat the night",
    "champion": "name another with --champion",
    "reference": "replace it with the champion: --rebase",
}

Role: TypeAlias = Literal["candidate", "champion", "reference"]
ROLES = get_args(Role)


class Night(NamedTuple):
    """What happened in a night.

    Attributes
    ----------
    row : dict
        The row of the ledger.
    decision : Decision
    evaluations : dict of str to Evaluation
        The evaluations of all scored checkpoints, by the names of their folders.
    names : dict of str to str
        The names of the candidate, the champion and the reference.
    failed : dict of str to str
        The checkpoints that could not be scored, and why.
    """

    row: Row
    decision: Decision
    evaluations: dict[str, Evaluation]
    names: dict[str, str]
    failed: dict[str, str]


def date_of(text: str) -> str:
    """Return a date as ``2026-11-06``, from any form of ISO 8601, "today" or "yesterday" (UTC)."""
    today = datetime.now(UTC).date()
    words = {"today": today, "yesterday": today - timedelta(1)}
    try:
        return (words.get(text) or date.fromisoformat(text)).isoformat()
    except ValueError:
        raise InvalidDataError(
            f"night is {text!r}; expected a date such as 2026-11-23, today or yesterday",
            argument="day",
        ) from None


def read_nights(path: PathLike) -> list[Row]:
    """Return the rows of a ledger in the order of the nights; `path` is the ledger or its folder.

    Raises `InvalidFileError` if the ledger is missing, empty or cannot be read.
    """
    file = Path(path)
    file = file / f"{JOB}.jsonl" if file.is_dir() else file
    rows = Ledger(file, JOB).rows
    if not rows:
        raise InvalidFileError("contains no nights; `sparse-eval night` writes them", file)
    return [rows[night] for night in sorted(rows)]


def nights_with(metric: str, rows: Iterable[Row]) -> list[Row]:
    """Return the decided nights whose models have a metric."""
    return [row for row in rows if metric in row.get("metrics", {}).get("candidate", {})]


def series(rows: Sequence[Row]) -> pd.DataFrame:
    """Return a table of nights: models, their main metric, the verdict and the next champion."""
    import pandas as pd

    table = []
    for row in rows:
        metrics = row.get("metrics", {})
        main = next(iter(metrics.get("candidate", {})), None)
        models = {role: row[role]["file"] if role in row else None for role in ROLES}
        table.append({
            "night": row["night"],
            "metric": main,
            **{role: file and Path(file).stem for role, file in models.items()},
            **{f"{role}_mean": metrics[role][main]["mean"] if main else None for role in ROLES},
            "verdict": row.get("verdict", ""),
            "promoted": row["promoted"],
            "next_champion": Path(row["next"]["champion"]["file"]).stem,
        })  # fmt: skip
    return pd.DataFrame(table)


def name_champion(out: PathLike, night: str, first: Mapping[Role, Path], champion: Path) -> Row:
    """Make a checkpoint the champion of later nights, without a comparison; return the row.

    If this night has not been decided, the checkpoint becomes its champion, too.
    """
    folder = make_folder(out)
    with locked_folder(folder):
        ledger = Ledger(folder / f"{JOB}.jsonl", JOB)
        state = _state(ledger, night, {**first, "champion": champion})
        row = _content(ledger, night) or {"night": night, **state}
        named = _recorded("champion", champion)
        if "verdict" not in row:
            row["champion"] = named
        reference = row["next"]["reference"] if "next" in row else state["reference"]
        row |= {"next": {"champion": named, "reference": reference}}
        return _append(ledger, night, row | {"promoted": False, "named": True})


def decide_night(
    out: PathLike,
    night: str,
    holdout: Holdout,
    checkpoints: PathLike | Iterable[PathLike],
    rules: Rules | Mapping[str, Any] | PathLike,
    *,
    candidate: str,
    first: Mapping[Role, Path],
    metrics: Sequence[str] = (),
    max_age: str | None = None,
    promote: bool = False,
    rebase: bool = False,
    progress: bool | None = None,
) -> Night:
    """Score checkpoints, judge the best or newest one, and add the decision to the ledger.

    Parameters
    ----------
    out : str or Path
        The folder of the ledger. Each night has a subfolder with its results, named after its
        date; `sweep` continues it.
    night : str
        The date. If it has been decided already, the decision is replaced, and its results too if
        the data or metrics have changed. If the same candidate passes again, it stays promoted.
    holdout : Holdout
    checkpoints : str, Path or iterable of them
        As in `sweep`. Candidates are those that were not scored in an earlier night.
    rules
        As in `gate`.
    candidate : str
        "newest", by the modification time of its file, or "best of ndcg@10".
    first : mapping of str to Path
        The champion, and maybe the reference, of the first night.
    metrics : sequence of str
        Metrics to compute in addition to those of the rules and of `candidate`.
    max_age : str, optional
        The largest age of the champion's file, such as "30D"; an older one raises an error.
    promote : bool
        Make the candidate the champion if it passes and all checkpoints could be scored. It also
        becomes the reference if it is shown to be better than the reference, by every metric of a
        rule with ``not_worse_by``.
    rebase : bool
        Take the champion as the reference.

    Raises
    ------
    InvalidDataError
        If one of the three models is missing, has changed, could not be scored or may know
        held-out pairs; if the champion is too old, no checkpoint is new, or a later night decided.
    InvalidFileError, InvalidMetricError, OutputError
        As from `gate` and `sweep`.
    """
    parsed = Rules.parse(rules)
    _, is_best, monitored = candidate.partition(_BEST)
    if candidate != "newest" and not is_best:
        raise InvalidDataError(
            f"candidate is {candidate!r}; expected 'newest', or as 'best of ndcg@10'",
            argument="candidate",
        )
    wanted = [*filter(None, [monitored]), *(rule.metric for rule in parsed.rules), *metrics]
    request, monitor = parse_monitored(list(dict.fromkeys(wanted)), monitored or None)
    inputs = Scoring.of(training_part(holdout), holdout.validation, request).inputs
    folder = make_folder(out)
    place = folder / night
    with locked_folder(folder):
        ledger = Ledger(folder / f"{JOB}.jsonl", JOB)
        kept = _state(ledger, night, first)
        if rebase:
            kept["reference"] = kept["champion"]
        for role, one in kept.items():
            _check_unchanged(role, one, _recorded(role, Path(one["file"]))["sha256"])
            _check_training(role, Path(one["file"]), holdout)
        _check_age(Path(kept["champion"]["file"]), max_age)
        files = _new_checkpoints(checkpoints, ledger, night, kept)
        _make_room(place, inputs)
        old = dict.fromkeys(Path(one["file"]) for one in kept.values())
        table = sweep(
            [*files, *old], holdout, request.metrics, out=place, save=True, monitor=monitor,
            progress=progress,
        )  # fmt: skip
        rows: dict[str, Any] = {row["file"]: row for row in table.to_dict("records")}
        failed = {file: row["error"] for file, row in rows.items() if row["status"] == "failed"}
        chosen = _choose(files, rows, monitor if is_best else None)
        if shown(chosen) not in failed:
            _check_training("candidate", chosen, holdout)
        compared = {"candidate": {"file": path_of(chosen), "sha256": rows[shown(chosen)]["sha256"]}}
        compared |= kept
        saved = saved_evaluations(place)
        evaluations = {
            saved[file].name: Evaluation.load(saved[file]) for file in rows if file in saved
        }
        names = {}
        for role, one in compared.items():
            file = shown(chosen if role == "candidate" else Path(one["file"]))
            if file in failed:
                raise InvalidDataError(f"the {role} {file} could not be scored: {failed[file]}")
            _check_unchanged(role, one, rows[file]["sha256"])
            names[role] = saved[file].name
        evs = {role: evaluations[name] for role, name in names.items()}
        has_reference = kept["reference"]["sha256"] != kept["champion"]["sha256"]
        reference = evs["reference"] if has_reference else None
        decision = gate(parsed, evs["candidate"], evs["champion"], reference)
        earlier = _content(ledger, night)
        was_promoted = earlier.get("promoted") and earlier["candidate"] == compared["candidate"]
        is_named = bool(earlier.get("named")) and "verdict" in earlier
        is_good = bool(decision) and not failed and not is_named
        promoted = is_good and bool(promote or was_promoted)
        new = dict(kept)
        if promoted:
            new["champion"] = compared["candidate"]
            if _is_better(parsed, evs["candidate"], evs["reference"]):
                new["reference"] = compared["candidate"]
        elif is_named:
            new["champion"] = earlier["next"]["champion"]
        _append(ledger, night, {
            "night": night,
            **compared,
            "next": new,
            "promoted": promoted,
            "named": is_named,
            **decision.to_dict(),
            "scored": sorted({row["sha256"] for row in rows.values()}),
            "inputs": inputs,
            "metrics": {role: _numbers(ev) for role, ev in evs.items()},
        })  # fmt: skip
    return Night(ledger.rows[night], decision, evaluations, names, failed)


def _content(ledger: Ledger, night: str) -> Row:
    """Return the recorded row of a night, without its time; empty if there is none."""
    row = ledger.rows.get(night, {})
    return {name: value for name, value in row.items() if name not in (*LINE, "time")}


def _append(ledger: Ledger, night: str, row: Row) -> Row:
    """Record a night, unless the same row is there already, and return the row."""
    if row != _content(ledger, night):
        now = datetime.now(UTC).isoformat(timespec="seconds")
        ledger.append(night, **row, time=now)
    return ledger.rows[night]


def _new_checkpoints(
    checkpoints: PathLike | Iterable[PathLike], ledger: Ledger, night: str, kept: dict[str, Row]
) -> list[Path]:
    """Return the checkpoints not scored in an earlier night, without champion and reference."""
    files = list_checkpoints(checkpoints)
    for file in files:
        if not file.is_file():
            raise InvalidFileError("does not exist; correct the path", file, argument="checkpoints")
    known = {one["sha256"] for one in kept.values()}
    for slot, row in ledger.rows.items():
        known |= {*row.get("scored", ())} if slot < night else set()
    new = [file for file in files if digest_file(file) not in known]
    if not new:
        raise InvalidDataError(
            "there is no new checkpoint: each was scored in an earlier night, or has the content "
            "of the champion or the reference",
            argument="checkpoints",
        )
    return new


def _make_room(place: Path, inputs: Row) -> None:
    """Remove the results of a night if they were computed from different data or metrics."""
    before = Ledger(place / f"{SWEEP}.jsonl", SWEEP).rows.get(INPUTS)
    if before is not None and (changed := differences(before, inputs)):
        warn(f"the results in {shown(place)} are replaced: {changed}")
        shutil.rmtree(place)


def _choose(files: list[Path], rows: Mapping[str, Row], monitor: Metric | None) -> Path:
    """Return the best file by `monitor`, or the newest; the first file if none was scored."""
    if monitor is None:
        return max(files, key=lambda file: (file.stat().st_mtime_ns, natural(file.name)))
    by_file = {file: rows[shown(file)] for file in files}
    return best_of(by_file, monitor, lambda file: by_file[file][str(monitor)]) or files[0]


def _state(ledger: Ledger, night: str, first: Mapping[Role, Path]) -> dict[str, Row]:
    """Return the champion and reference of a night: recorded, or set by the last night."""
    last = max(ledger.rows, default="")
    if last > night:
        raise InvalidDataError(
            f"night {last} has been decided already, so no earlier night can be decided; decide "
            "nights in the order of their dates",
            argument="day",
        )
    if last:
        of = ledger.rows[last] if last == night else ledger.rows[last]["next"]
        return {name: of[name] for name in ("champion", "reference")}
    if "champion" not in first:
        raise InvalidDataError(
            'there is no champion yet: name the checkpoint in production, champion = "FILE"',
            argument="champion",
        )
    champion = _recorded("champion", first["champion"])
    of_first = first.get("reference")
    reference = champion if of_first is None else _recorded("reference", of_first)
    return {"champion": champion, "reference": reference}


def _recorded(role: str, path: Path) -> Row:
    """Return a checkpoint as the ledger records it."""
    if not path.is_file():
        raise InvalidDataError(
            f"the {role} {shown(path)} does not exist; restore it, or {_INSTEAD[role]}",
            argument=role,
        )
    return {"file": path_of(path), "sha256": digest_file(path)}


def _check_unchanged(role: str, one: Row, sha256: str) -> None:
    """Raise if the content of a checkpoint differs from the recorded one."""
    if sha256 != one["sha256"]:
        raise InvalidDataError(
            f"the {role} {shown(one['file'])} has changed since it was recorded; give each "
            f"checkpoint its own file name. Restore it, or {_INSTEAD[role]}",
            argument=role,
        )


def _check_age(path: Path, max_age: str | None) -> None:
    """Raise if the champion is too old."""
    if max_age is None:
        return
    most = Clock("ns").duration("max_age", max_age, 1)
    age = time.time_ns() - path.stat().st_mtime_ns
    if age > most:
        raise InvalidDataError(
            f"the champion {shown(path)} was written {age / 86_400e9:.1f} days ago, and max_age is "
            f"{max_age}. Name a newer one with --champion, or raise max_age",
            argument="max_age",
        )


def _check_training(role: str, path: Path, holdout: Holdout) -> None:
    """Raise if a model may have been trained on the held-out pairs."""
    if has_other_data(as_model(read_checkpoint(path).model), holdout.train):
        raise InvalidDataError(
            f"the {role} {shown(path)} was trained on pairs that are not in the training part, so "
            "it may know the held-out pairs. Cut the split after its last training event",
            argument=role,
        )


def _is_better(rules: Rules, candidate: Evaluation, reference: Evaluation) -> bool:
    """Return whether a candidate is shown to be better by every metric with `not_worse_by`."""
    wanted = dict.fromkeys(
        rule.metric
        for rule in rules.rules
        if rule.asks == "not_worse_by" and rule.segments is None and rule.level == "fail"
    )
    better = [{"metric": metric, "better_by": 0} for metric in wanted]
    if not better:
        return False
    return bool(gate({"rule": better, "alpha": rules.alpha}, candidate, reference))


def _numbers(ev: Evaluation) -> Row:
    """Return the mean and the interval of each metric."""
    names = ("mean", "ci_low", "ci_high")
    rows = plain_rows(ev._summarize())
    return {metric: {name: one[name] for name in names} for metric, one in rows.items()}
