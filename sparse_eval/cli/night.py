"""The command night, and its file of settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core.atomic_files import as_input
from ..errors import InvalidDataError, shown
from ..inputs.input_files import naming
from .comparing import DecisionFormat, end_with
from .loading import Splitting, check_is_fresh
from .options import Progress, Seed, counted, option, step
from .prometheus import Gauges
from .terminal import echo, note, tell

if TYPE_CHECKING:
    from ..datasets.split import Holdout

#: What `sparse-eval night --example` prints.
EXAMPLE = """\
# The settings of sparse-eval night. Paths are relative to the folder of this file.
# {night} is the date, such as 2026-11-06, and {tomorrow} the day after it.

out = "nights"                  # gate.jsonl, and a folder with the results of each night
rules = "rules.toml"            # sparse-eval gate --example prints one
checkpoints = "models"          # a folder, a file or a pattern, or a list of them
candidate = "best of ndcg@10"   # or "newest", by modification time
champion = "production.npz"     # for the first night; later, gate.jsonl has the champion
# reference = "release.npz"     # for the first night; by default, the champion
# max_age = "30D"               # of the champion's file, by modification time
# metrics = ["recall@20"]       # in addition to those of the rules
# prometheus = "/var/lib/node_exporter/sparse_eval.prom"
# page = "nights/report.html"

# The data: this table, or a folder written by `sparse-eval split`: split = "splits/{night}"
[split]
input = "logs"                  # more keys: the arguments of `se.datasets.load` and `se.split`
at = "{night}"
before = "{tomorrow}"           # a repeated night then has the same events
fail_if_stale = "12h"           # longest time from the last event to the end of the night
"""


@dataclass(frozen=True)
class Settings:
    """The checked settings of a file; see `EXAMPLE`."""

    out: str
    rules: str
    checkpoints: list[str]
    split: Any
    candidate: str
    champion: str = ""
    reference: str = ""
    max_age: str | None = None
    metrics: list[str] = field(default_factory=list)
    prometheus: str = ""
    page: str = ""
    folder: Path = Path()

    @classmethod
    def read(cls, path: Path, night: str) -> Settings:
        """Read the settings of a night."""
        from ..results.gate_rules import check_keys, read_toml

        path = as_input(path)
        content = read_toml(path)
        with naming(path):
            names = {one.name: one.type for one in fields(cls) if one.name != "folder"}
            check_keys(content, names, "the file of settings")
            for name in ("out", "rules", "checkpoints", "split", "candidate"):
                if name not in content:
                    raise InvalidDataError(f"the key {name!r} is missing; see --example")
            if "{" in str(content["out"]):
                raise InvalidDataError("out is the folder of all nights; it has no date")
            if isinstance(content["checkpoints"], str):
                content["checkpoints"] = [content["checkpoints"]]
            for name, value in content.items():
                is_list = names[name] == "list[str]"
                each = value if is_list and isinstance(value, list) else [value]
                is_table = name == "split" and isinstance(value, Mapping)
                if not is_table and (
                    is_list != isinstance(value, list) or not all(isinstance(x, str) for x in each)
                ):
                    kind = "a list of text" if is_list else "text"
                    raise InvalidDataError(f"{name} is {value!r}; expected {kind}")
            dates = {"{night}": night, "{tomorrow}": _tomorrow(night)}
            return cls(**_dated(content, dates), folder=path.parent)

    def place(self, name: str) -> Path:
        """Return the path of a setting, relative to the folder of the file."""
        return Path(self.folder, getattr(self, name))

    def holdout(self, night: str, seed: int) -> Holdout:
        """Read or make the split."""
        splitting = Splitting()
        if isinstance(self.split, str):
            return splitting.saved(self.folder / self.split)
        from ..results.gate_rules import check_keys

        known = [one.name for one in fields(Splitting)]
        check_keys(self.split, ["input", "fail_if_stale", *known], "[split]")
        options = dict(self.split)
        source, limit = options.pop("input", None), options.pop("fail_if_stale", None)
        if source is None:
            raise InvalidDataError("[split] needs the key input, the file of interactions")
        splitting = replace(splitting, **options)
        interactions = splitting.read_wanted(self.folder / source)
        if limit is not None:
            check_is_fresh(interactions, limit, _tomorrow(night))
        return splitting.split(interactions, seed)


def _tomorrow(night: str) -> str:
    return (date.fromisoformat(night) + timedelta(1)).isoformat()


def _dated(value: Any, dates: Mapping[str, str]) -> Any:
    """Replace {night} and {tomorrow} in settings with dates."""
    if isinstance(value, Mapping):
        return {name: _dated(one, dates) for name, one in value.items()}
    if isinstance(value, list):
        return [_dated(one, dates) for one in value]
    for name, day in dates.items():
        value = value.replace(name, day) if isinstance(value, str) else value
    return value


def night(
    config: Path | None = None,
    *,
    day: Annotated[str, option("--night", metavar="DATE")] = "today",
    promote: bool = False,
    rebase: bool = False,
    champion: Path | None = None,
    example: bool = False,
    seed: Seed = 0,
    execution: Progress,
    printed: DecisionFormat = "table",
) -> None:
    """Score new checkpoints, judge the best by rules, and record the decision.

    Exit status: 0 passed, 3 failed, 4 undecided, 1 passed but not promoted because checkpoints
    could not be scored, 2 invalid settings, rules or data. Repeating a night replaces its decision.

    Example: sparse-eval night night.toml --promote

    Parameters
    ----------
    config
        A file of TOML; --example prints one.
    day
        The date of the night, such as 2026-11-06, today or yesterday (UTC).
    promote
        Make the candidate the champion if it passes.
    rebase
        Take the champion as the reference.
    champion
        Decide nothing: make this checkpoint the champion of the next night, regardless of verdicts.
    example
        Print a commented file of settings, and exit.
    """
    from ..jobs.nights import date_of, decide_night, name_champion

    if example:
        echo(EXAMPLE, nl=False)
        return
    if config is None:
        raise InvalidDataError("CONFIG.toml: missing; see sparse-eval night --help")
    tonight = date_of(day)
    settings = Settings.read(config, tonight)
    given = [role for role in ("champion", "reference") if getattr(settings, role)]
    first: Any = {role: settings.place(role) for role in given}
    if champion is not None:
        if promote or rebase:
            raise InvalidDataError("--champion decides nothing; leave out --promote and --rebase")
        row = name_champion(settings.place("out"), tonight, first, champion)
        note(f"from now on, the champion is {shown(row['next']['champion']['file'])}")
        return
    gauges = Gauges(settings.place("prometheus") if settings.prometheus else None)
    with gauges.applied():
        gauges.split = settings.place("out").resolve().name
        holdout = settings.holdout(tonight, seed)
        with step("night") as done:
            found = decide_night(
                settings.place("out"),
                tonight,
                holdout,
                [settings.folder / one for one in settings.checkpoints],
                settings.place("rules"),
                candidate=settings.candidate,
                first=first,
                metrics=settings.metrics,
                max_age=settings.max_age,
                promote=promote,
                rebase=rebase,
                progress=execution.bars,
            )
            done(counted(len(found.evaluations), "checkpoint"))
        _tell(found.row, found.failed)
        if settings.page:
            from ..report import write_report

            compared = {name: found.evaluations[name] for name in found.names.values()}
            write_report(compared, settings.place("page"), nights=settings.place("out"))
        best = found.names["candidate"]
        gauges.leave(found.evaluations, best, len(found.failed), found.row["verdict"])
    end_with(found.decision, printed)
    if found.failed:
        raise typer.Exit(1)


def _tell(row: Mapping[str, Any], failed: Mapping[str, str]) -> None:
    """Print which models were compared, and whether the candidate was promoted."""
    for role in ("candidate", "champion", "reference"):
        note(f"{role}: {shown(row[role]['file'])}")
    for file, error in failed.items():
        tell(f"warning: {file}: {error}", model=file)
    if row["promoted"]:
        note("promoted: from the next night on, the candidate is the champion")
    elif failed:
        counts = counted(len(failed), "checkpoint")
        tell(f"{counts} could not be scored; repair or remove, and repeat the night", "error")
    elif row["verdict"] == "passed":
        note("passed, and not promoted: repeat the command with --promote")
