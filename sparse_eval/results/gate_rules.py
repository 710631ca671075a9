"""`Rules` of a gate: read from TOML or a mapping, and checked; unknown keys are errors."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ..core.arguments import check_choice, check_fraction, check_number, check_whole
from ..core.atomic_files import as_input
from ..core.hashing import digest
from ..errors import InvalidDataError, InvalidFileError
from ..inputs.input_files import naming
from .decisions import Margin

if TYPE_CHECKING:
    from ..core.types import PathLike

#: What a test or a gate concludes.
Verdict: TypeAlias = Literal["passed", "undecided", "failed"]

#: What `sparse-eval gate --example` prints.
EXAMPLE = """\
# Rules of a gate: may the candidate replace the champion?

min_users = 2000          # fewest evaluated users that both share
min_shared = 0.95         # smallest share of the champion's users that the candidate has
max_unknown_items = 0.05  # largest share of held-out pairs whose item a model does not know
alpha = 0.05              # largest chance to pass a candidate that breaks a rule

[[rule]]                  # not worse than the champion, nor than the reference if there is one
metric = "ndcg@10"
not_worse_by = "2%"       # of the other model's mean; or 0.002, in the unit of the metric

[[rule]]                  # the same in every segment
metric = "recall@20"
segments = "activity"     # or "newcomers", or a file of users: "users.csv", "users.csv:country"
not_worse_by = "10%"
min_users = 500           # smaller segments are not judged

[[rule]]                  # limit the share of users who lose more than 0.05
losers = "ndcg@10"
more_than = 0.05
at_most = 0.10

[[rule]]                  # a bound on the candidate itself
metric = "coverage@20"
at_least = 0.15
level = "warn"            # shown, but does not change the verdict

[[rule]]                  # better than a baseline that was saved with the candidate
metric = "ndcg@10"
against = "popularity"
better_by = "5%"
"""

#: The keys of a file, other than its rules.
_SETTINGS = (
    "min_users", "min_shared", "max_unknown_items", "alpha", "undecided", "alpha_per_year",
    "nights_per_year",
)  # fmt: skip

#: What a rule asks for; a rule has exactly one.
_ASKS = ("not_worse_by", "better_by", "at_least", "at_most")

_KEYS = ("metric", "losers", "more_than", *_ASKS, "segments", "against", "min_users", "level")


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes
    ----------
    metric : str
    asks : {"not_worse_by", "better_by", "at_least", "at_most"}
    size : Margin or float
        A margin for the first two, a bound for the others.
    more_than : float or None
        For a rule about losers: a user who loses more than this counts.
    segments : str or None
        "activity", "newcomers", or a file of users.
    against : str or None
        "champion", "reference" or a baseline. None compares with the champion and, for
        `not_worse_by`, also with the reference.
    min_users : int
        Smaller segments are not judged.
    level : {"fail", "warn"}
    """

    metric: str
    asks: str
    size: Any
    more_than: float | None = None
    segments: str | None = None
    against: str | None = None
    min_users: int = 2
    level: str = "fail"

    @classmethod
    def parse(cls, given: Any, number: int) -> Rule:
        """Check a rule, given as a mapping; `number` counts from 1."""
        what = f"rule {number}"
        if not isinstance(given, Mapping):
            raise InvalidDataError(
                f"{what} is {given!r}; expected keys, such as metric", argument="rule"
            )
        check_keys(given, _KEYS, what)
        asks = [name for name in _ASKS if name in given]
        is_of_losers = "losers" in given
        if is_of_losers == ("metric" in given):
            raise InvalidDataError(f"{what} needs either metric or losers", argument="rule")
        if len(asks) != 1:
            raise InvalidDataError(
                f"{what} has {', '.join(asks) or 'none'} of {', '.join(_ASKS)}; expected one",
                argument="rule",
            )
        if is_of_losers and (asks != ["at_most"] or "more_than" not in given):
            raise InvalidDataError(
                f"{what} is about losers, which needs more_than and at_most", argument="rule"
            )
        if "more_than" in given and not is_of_losers:
            raise InvalidDataError(f"{what}: more_than is for losers", argument="rule")
        ask = asks[0]
        if ask in ("at_least", "at_most") and "against" in given and not is_of_losers:
            raise InvalidDataError(
                f"{what}: {ask} bounds the candidate itself; against is for not_worse_by and "
                "better_by",
                argument="rule",
            )
        size: Any = given[ask]
        if ask in ("not_worse_by", "better_by"):
            size = Margin.parse(size, f"{what}: {ask}")
            if ask == "not_worse_by" and size.share >= 1:
                raise InvalidDataError(
                    f"{what}: not_worse_by is {given[ask]!r}, with which every model would pass; "
                    "expected less than 100%",
                    argument=ask,
                )
        elif isinstance(size, bool) or not isinstance(size, int | float):
            raise InvalidDataError(f"{what}: {ask} is {size!r}; expected a number", argument=ask)
        level = given.get("level", "fail")
        check_choice(f"{what}: level", level, ["fail", "warn"])
        more_than = given.get("more_than")
        metric = given["losers" if is_of_losers else "metric"]
        for name, value in (
            ("metric", metric),
            *((key, given.get(key, "")) for key in ("segments", "against")),
        ):
            if not isinstance(value, str):
                raise InvalidDataError(
                    f"{what}: {name} is {value!r}; expected text", argument="rule"
                )
        return cls(
            metric,
            ask,
            size,
            None if more_than is None else check_number(f"{what}: more_than", more_than, 0),
            given.get("segments"),
            given.get("against"),
            check_whole(f"{what}: min_users", given.get("min_users", 2), 2),
            level,
        )

    def __str__(self) -> str:
        size = self.size
        if isinstance(size, Margin):
            size = f"{100 * size.share:g}%" if size.share else f"{size.absolute:g}"
        if self.more_than is not None:
            return f"losers of more than {self.more_than:g} by {self.metric}: at most {size:g}"
        return f"{self.metric} {self.asks.replace('_', ' ')} {size}"


@dataclass(frozen=True)
class Rules:
    """The rules of a gate.

    Attributes
    ----------
    rules : tuple of Rule
    min_users : int
        The fewest evaluated users that both models share.
    min_shared : float
        The smallest share of the champion's users that the candidate has.
    max_unknown_items : float
        The largest share of held-out pairs whose item a model does not know.
    alpha : float
        The level of each rule's one-sided test.
    alpha_failed : float
        The level of all tests for a failure together; each test has its share.
    undecided : {"undecided", "fail"}
    folder : Path
        The folder of the files of segments.
    digest : str
        16 hexadecimal digits.
    """

    rules: tuple[Rule, ...]
    min_users: int = 2
    min_shared: float = 0.0
    max_unknown_items: float = 1.0
    alpha: float = 0.05
    alpha_failed: float = 0.05
    undecided: Literal["undecided", "fail"] = "undecided"
    folder: Path = Path()
    digest: str = ""

    @classmethod
    def parse(cls, given: Rules | Mapping[str, Any] | PathLike) -> Rules:
        """Read and check a TOML file, or a mapping with the same content.

        Raises
        ------
        InvalidFileError
            If the file cannot be read, or is no TOML.
        InvalidDataError
            If a key is unknown, a value is out of its range, or there is no rule.
        """
        if isinstance(given, Rules):
            return given
        if isinstance(given, Mapping):
            return cls._of(given, Path())
        path = as_input(given)
        content = read_toml(path)
        with naming(path):
            return cls._of(content, path.parent)

    @classmethod
    def _of(cls, given: Mapping[str, Any], folder: Path) -> Rules:
        check_keys(given, (*_SETTINGS, "rule"), "the file of rules")
        tables = given.get("rule", [])
        if not isinstance(tables, list | tuple) or not tables:
            raise InvalidDataError("there is no rule; write one or more [[rule]]", argument="rule")
        rules = tuple(Rule.parse(table, number) for number, table in enumerate(tables, 1))
        shares = {}
        for name, usual in (("min_shared", 0.0), ("max_unknown_items", 1.0)):
            shares[name] = check_number(name, given.get(name, usual), 0)
            if shares[name] > 1:
                raise InvalidDataError(f"{name} is a share, at most 1", argument=name)
        if all(rule.level == "warn" for rule in rules):
            raise InvalidDataError(
                'every rule has level = "warn", so that the gate could not fail; leave it out of '
                "one or more",
                argument="rule",
            )
        alpha = check_fraction("alpha", given.get("alpha", 0.05))
        if alpha >= 0.5:
            raise InvalidDataError(
                f"alpha is {alpha:g}, the chance of a wrong pass; expected less than 0.5",
                argument="alpha",
            )
        alpha_failed = alpha
        if ("alpha_per_year" in given) != ("nights_per_year" in given):
            raise InvalidDataError(
                "alpha_per_year and nights_per_year belong together; give both, or neither",
                argument="alpha_per_year",
            )
        if "alpha_per_year" in given:
            yearly = check_fraction("alpha_per_year", given["alpha_per_year"])
            alpha_failed = yearly / check_whole("nights_per_year", given["nights_per_year"], 1)
        undecided = given.get("undecided", "undecided")
        check_choice("undecided", undecided, ["undecided", "fail"])
        least = check_whole("min_users", given.get("min_users", 2), 2)
        key = digest(repr(sorted(given.items(), key=lambda item: item[0])))[:16]
        return cls(
            rules, least, **shares, alpha=alpha, alpha_failed=alpha_failed, undecided=undecided,
            folder=folder, digest=key,
        )  # fmt: skip


def read_toml(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file, or raise `InvalidFileError`."""
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidFileError(f"cannot be read: {error.strerror or error}", path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidFileError(f"is no TOML: {error}", path) from None


def check_keys(given: Mapping[str, Any], known: Iterable[str], what: str) -> None:
    """Raise if a key is unknown, and name the nearest one."""
    known = list(known)
    for key in given:
        if key not in known:
            near = get_close_matches(str(key), known, 1)
            meant = f"; did you mean {near[0]}?" if near else "."
            raise InvalidDataError(
                f"{what} has the key {key!r}{meant} The keys are {', '.join(known)}",
                argument="rules",
            )
