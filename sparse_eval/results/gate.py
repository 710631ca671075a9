"""`gate`: decide by rules whether a candidate may replace the champion."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np

from ..core.formatting import as_html, numbers, records, text_table
from ..errors import InvalidDataError
from .clusters import check_same_requests, linear_in, linear_pair, values_in
from .decisions import Margin, users_needed
from .differences import POWER, replicates_distance, values_distance
from .distribution import activity_of, exceed
from .evaluation import named_evaluations
from .gate_rules import Rules
from .intervals import interval_around, one_sided
from .matching import SharedUsers, check_alike, shared_metrics, shared_users
from .saving import SUMMARY, summaries_in
from .segments import Segments, segmentations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pandas as pd

    from ..core.types import Integers, JSONValue, PathLike
    from .differences import Distance
    from .evaluation import Evaluation
    from .gate_rules import Rule, Verdict

#: The columns of a decision's table.
COLUMNS = (
    "rule", "segment", "against", "n_users", "candidate", "other", "difference", "excess",
    "ci_low", "ci_high", "p_passed", "p_failed", "verdict", "users_needed", "level",
)  # fmt: skip

#: The distance in a segment with too few users.
_UNKNOWN = (math.nan, math.nan, math.nan)

#: The verdict about a segment that is too small to be judged.
_TOO_FEW = "too few users"


@dataclass(frozen=True, eq=False, repr=False)
class Decision:
    """Whether a candidate may replace the champion.

    Attributes
    ----------
    verdict : {"passed", "failed", "undecided"}
        "undecided" if a rule is neither shown to hold nor shown to be broken.
    table : pandas.DataFrame
        One row for each rule, segment and opponent of the candidate; see `gate`.
    notes : tuple of str
        Counts of users that are not compared, and undecided rules.
    alpha : float
        The level of each one-sided test.
    rules : str
        A digest of the rules, 16 hexadecimal digits.
    """

    verdict: Verdict
    table: pd.DataFrame
    notes: tuple[str, ...]
    alpha: float
    rules: str

    def shown(self) -> list[list[str]]:
        """Return the rows of the table as formatted text."""
        rows = []
        for row in self.table.to_dict("records"):
            what = row["rule"] + (f", {row['segment']}" if row["segment"] else "")
            low, high, excess = numbers(row["ci_low"], row["ci_high"], row["excess"])
            verdict = row["verdict"]
            if isinstance(row["users_needed"], int):
                verdict += f": {row['users_needed']:,} users would decide"
            if row["level"] == "warn":
                verdict += " (warning only)"
            difference = "" if math.isnan(row["difference"]) else numbers(row["difference"])[0]
            interval = f"{low} to {high}" if low else "none"
            rows.append(
                [what, row["against"], f"{row['n_users']:,}", difference, excess, interval, verdict]
            )
        return rows

    def _text(self, style: str) -> str:
        headings = [
            "rule",
            "against",
            "users",
            "difference",
            "beyond margin",
            "interval",
            "verdict",
        ]
        aligned = ["left", "left", "right", "decimal", "decimal", "left", "left"]
        table = text_table(self.shown(), headings, aligned, style)
        note = (
            f"beyond margin: how far the rule holds, with its {100 * (1 - 2 * self.alpha):g} % "
            "interval; above 0 it passes"
        )
        return "\n".join([table, "", f"verdict: {self.verdict}", note, *self.notes])

    def __bool__(self) -> bool:
        """Return whether the verdict is "passed"."""
        return self.verdict == "passed"

    def __str__(self) -> str:
        return self._text("simple")

    def __repr__(self) -> str:
        return f"<Decision: {self.verdict}, {len(self.table)} tests>"

    def _repr_html_(self) -> str:
        return as_html(f"{self!r}", self.table.astype(str), "table")

    def to_markdown(self) -> str:
        """Return the table in Markdown."""
        return self._text("pipe")

    def to_dict(self) -> dict[str, JSONValue]:
        """Return the decision as JSON values."""
        tests: Any = records(self.table)
        notes: Any = list(self.notes)
        return {
            "verdict": self.verdict,
            "alpha": self.alpha,
            "rules": self.rules,
            "tests": tests,
            "notes": notes,
        }

    def to_junit(self) -> str:
        """Return the tests as JUnit XML, which continuous-integration servers display.

        An undecided test is an error there. A test of a rule that only warns is at most skipped.
        """
        suite = ET.Element("testsuite", name="sparse_eval gate", tests=str(len(self.table) + 1))
        counts = {"failure": 0, "error": 0, "skipped": 0}
        kinds = {"failed": "failure", "undecided": "error", _TOO_FEW: "skipped"}
        for row, cells in zip(self.table.to_dict("records"), self.shown(), strict=True):
            name = ", ".join(cell for cell in cells[:2] if cell)
            case = ET.SubElement(suite, "testcase", classname="gate", name=name)
            kind = kinds.get(row["verdict"])
            if kind in ("failure", "error") and row["level"] == "warn":
                kind = "skipped"
            if kind:
                counts[kind] += 1
                ET.SubElement(case, kind, message="; ".join(filter(None, cells[3:])))
        # The verdict is also undecided if no segment of a rule is large enough.
        case = ET.SubElement(suite, "testcase", classname="gate", name="verdict")
        if not self:
            kind = kinds[self.verdict]
            counts[kind] += 1
            ET.SubElement(case, kind, message="; ".join([self.verdict, *self.notes]))
        suite.set("failures", str(counts["failure"]))
        suite.set("errors", str(counts["error"]))
        suite.set("skipped", str(counts["skipped"]))
        ET.indent(suite)
        return ET.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def gate(
    rules: Rules | Mapping[str, Any] | PathLike,
    candidate: Evaluation | PathLike,
    champion: Evaluation | PathLike,
    reference: Evaluation | PathLike | None = None,
) -> Decision:
    """Decide by rules whether a candidate may replace the champion.

    Parameters
    ----------
    rules : path or mapping
        A TOML file (``sparse-eval gate --example`` prints one), or its content as a mapping.
    candidate, champion : Evaluation or path
        Evaluations on the same held-out data, or folders with saved ones.
    reference : Evaluation or path, optional
        A third model that changes rarely. Every rule with ``not_worse_by`` is also checked against
        it, so that many small losses do not add up.

    Returns
    -------
    Decision
        The candidate **passed** if every rule is shown to hold by a one-sided test at ``alpha``.
        All have to hold, so these tests need no correction (an intersection–union test [1]_). It
        **failed** if a rule is shown to be broken by a one-sided test at ``alpha``, corrected for
        the number of tests (Bonferroni). Otherwise the verdict is **undecided**, as it is if all
        segments of a rule have fewer than ``min_users``.

        Its ``table`` has for each test ``rule``, ``segment``, ``against``, ``n_users``, the means
        ``candidate`` and ``other``, and their ``difference``; ``excess``, how far the rule holds,
        with its interval ``ci_low``, ``ci_high`` at the level 1 − 2 ``alpha``; ``p_passed`` and
        ``p_failed`` of the two tests; ``verdict``; ``users_needed``, the number with which 80 of
        100 tests would decide (missing for metrics of all users together); and ``level``.

    Raises
    ------
    InvalidDataError
        If a rule has an unknown key, an invalid value, or a metric or baseline that was not
        evaluated. If the models share too few users (``min_users``, ``min_shared``), miss too many
        items (``max_unknown_items``), or have different held-out data. If a folder has several
        results.
    InvalidFileError
        If a file or folder cannot be read.

    See Also
    --------
    compare : Compare models without rules.

    Notes
    -----
    Let a and b be the means of the candidate and another model. If more is better:

    - ``not_worse_by`` m holds if a − b > −m, or with a percentage if a − (1 − m) b > 0;
    - ``better_by`` m holds if a − b > m, or a − (1 + m) b > 0;
    - ``at_least``, ``at_most`` hold if the candidate's mean is above or below the number;
    - ``losers`` holds if the share of users with b − a above ``more_than`` is below ``at_most``.

    If less is better, the first two reverse the inequality and the sign of m, and losers have a − b
    above ``more_than``. Tests are Student's t-tests, paired by users, or by jackknife replicates
    for metrics of all users together.

    References
    ----------
    .. [1] R. L. Berger, "Multiparameter hypothesis testing and acceptance sampling", Technometrics
       24(4), 1982, pp. 295-300. doi:10.1080/00401706.1982.10487790

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=400, n_items=100, seed=0)
    >>> holdout = se.split.random(clicks, seed=0)
    >>> popular = se.evaluate_model(se.baselines.popularity(holdout.train), holdout, "ndcg@10")
    >>> rules = {"rule": [{"metric": "ndcg@10", "not_worse_by": "2%"}]}
    >>> se.gate(rules, popular, popular).verdict
    'passed'
    """
    parsed = Rules.parse(rules)
    given = {"candidate": candidate, "champion": champion}
    if reference is not None:
        given["reference"] = reference
    for name, one in given.items():
        _check_single(name, one)
    named = named_evaluations(given, least=2)
    judge = Judge(parsed, named)
    by_rule = [list(judge.tests(rule)) for rule in parsed.rules]
    tests = [test for of_rule in by_rule for test in of_rule]
    judged = [test for test in tests if test["level"] == "fail" and test["verdict"] is None]
    most = parsed.alpha_failed / max(len(judged), 1)
    for test in tests:
        decide_test(test, parsed.alpha, most)
    verdicts = {test["verdict"] for test in judged}
    for rule, of_rule in zip(parsed.rules, by_rule, strict=True):
        # A rule is not shown to hold if all its segments are too small.
        if rule.level == "fail" and all(test["verdict"] == _TOO_FEW for test in of_rule):
            verdicts.add("undecided")
            judge.notes.append(
                f"undecided: the rule {rule} has no segment with min_users = {rule.min_users:,}"
            )
    verdict: Any = "failed" if "failed" in verdicts else "undecided"
    if verdicts <= {"passed"}:
        verdict = "passed"
    if verdict == "undecided" and parsed.undecided == "fail":
        verdict = "failed"
    import pandas as pd

    table = pd.DataFrame([{name: test[name] for name in COLUMNS} for test in tests])
    table["users_needed"] = table["users_needed"].astype("Int64")
    return Decision(verdict, table, tuple(judge.notes), parsed.alpha, parsed.digest)


def _check_single(name: str, given: Any) -> None:
    """Raise if a path is a folder of several results."""
    if not isinstance(given, str | Path) or (Path(given) / SUMMARY).exists():
        return
    found = [place.parent.name for place in summaries_in(Path(given))]
    if found:
        raise InvalidDataError(
            f"{name}: {given} is a folder of several results; name one of them: {', '.join(found)}",
            argument=name,
        )


def decide_test(test: dict[str, Any], alpha: float, most: float) -> None:
    """Set the verdict of a test, and the number of users that would decide it."""
    distance, n_users = test.pop("distance"), test["n_users"]
    excess, error, freedom = distance
    test["excess"] = excess
    interval = interval_around(excess, error, freedom, 1 - 2 * alpha, "t")
    test["ci_low"], test["ci_high"] = interval.low, interval.high
    test["p_passed"] = one_sided(excess, error, freedom)
    test["p_failed"] = one_sided(-excess, error, freedom)
    test["users_needed"] = None
    if test["verdict"] is not None:
        return
    if test["p_passed"] < alpha:
        test["verdict"] = "passed"
    elif test["p_failed"] < most:
        test["verdict"] = "failed"
    else:
        test["verdict"] = "undecided"
        level = 1 - 2 * (alpha if excess > 0 else most)
        if test.pop("is_paired", True) and error > 0:
            spread = error * math.sqrt(n_users)
            test["users_needed"] = users_needed(abs(excess), spread, level, POWER)


class Judge:
    """The evaluations of a gate, and the tests of its rules."""

    def __init__(self, rules: Rules, named: Mapping[str, Evaluation]) -> None:
        self.rules, self.named = rules, named
        self.parts = {name: ev._part for name, ev in named.items()}
        self.shared: dict[str, SharedUsers] = {}
        self.notes: list[str] = []
        self.n_newcomers = 0
        self._check_data()

    def _check_data(self) -> None:
        """Raise if the data do not meet the rules; note which users are not compared."""
        rules, shared = self.rules, self.users_with("champion")
        has_list = self.parts["candidate"].per_user.has_list[shared.rows[0]]
        n_shared, left_out = int(has_list.sum()), shared.left_out
        n_champion = len(has_list) + left_out["champion"]
        if n_shared < rules.min_users:
            raise InvalidDataError(
                f"candidate and champion share {n_shared:,} evaluated users with a list, and the "
                f"rules ask for min_users = {rules.min_users:,}. Evaluate both on the same, larger "
                "data",
                argument="min_users",
            )
        if n_shared < rules.min_shared * n_champion:
            raise InvalidDataError(
                f"the candidate has lists for {n_shared:,} of the champion's {n_champion:,} users, "
                f"a share of {n_shared / n_champion:.3g}, and the rules ask for min_shared = "
                f"{rules.min_shared:g}. Train it on their clicks, and evaluate both on one split",
                argument="min_shared",
            )
        for name, part in self.parts.items():
            made, seen = part.retrieval, part.seen
            if made is None or seen is None:
                continue
            share = made.n_unknown_pairs / max(seen.n_held_out, 1)
            if share > rules.max_unknown_items:
                raise InvalidDataError(
                    f"the {name} does not know the items of {share:.3g} of the held-out pairs, and "
                    f"the rules allow max_unknown_items = {rules.max_unknown_items:g}. Train it on "
                    "today's catalogue",
                    argument="max_unknown_items",
                )
        if self.n_newcomers:
            self.notes.append(
                f"users without a list of the champion (newcomers), who are not compared: "
                f"{self.n_newcomers:,}"
            )
        if left_out["candidate"]:
            self.notes.append(
                f"users only of the candidate, who are not compared: {left_out['candidate']:,}"
            )
        if left_out["champion"]:
            self.notes.append(
                f"users only of the champion, who are not compared: {left_out['champion']:,}"
            )

    def users_with(self, other: str) -> SharedUsers:
        """Return the users that the candidate and another model share, if the other has a list.

        For users without one, every list of the candidate would count as a gain.
        """
        if other not in self.shared:
            pair = {name: self.parts[name] for name in ("candidate", other)}
            shared = shared_users(pair)
            is_known = pair[other].per_user.has_list[shared.rows[1]]
            if other == "champion":
                self.n_newcomers = int(np.count_nonzero(~is_known))
            rows = [one[is_known] for one in shared.rows]
            self.shared[other] = shared._replace(rows=rows, users=shared.users[is_known])
        return self.shared[other]

    def opponents(self, rule: Rule) -> list[str]:
        """Return the names of the models that a rule compares the candidate with."""
        if rule.asks in ("at_least", "at_most") and rule.more_than is None:
            return [""]
        if rule.against is None:
            both = rule.asks == "not_worse_by" and "reference" in self.named
            return ["champion", "reference"] if both else ["champion"]
        if rule.against not in self.parts:
            baselines = self.named["candidate"].baselines
            if rule.against not in baselines:
                names = ", ".join([*self.parts, *baselines][1:])
                raise self._fault(
                    rule,
                    f"there is no {rule.against!r} to compare with; there are {names}",
                )
            self.parts[rule.against] = baselines[rule.against]._part
        return [rule.against]

    def tests(self, rule: Rule) -> Iterator[dict[str, Any]]:
        """Yield the tests of a rule: for each opponent, and each segment."""
        for other in self.opponents(rule):
            pair = {name: self.parts[name] for name in ("candidate", other) if name}
            requests = {name: part.request for name, part in pair.items()}
            (metric,), _ = shared_metrics(requests, rule.metric)
            check_alike(pair, [metric])
            per_user = self.parts["candidate"].traits_of(metric).per_user
            if per_user:
                check_same_requests(metric, pair)
            if not per_user and (rule.segments or rule.more_than is not None):
                raise self._fault(
                    rule,
                    f"{metric} is one number for all users together, which has "
                    "neither segments nor losers",
                )
            for segment, rows in self._members(rule, other):
                yield self._test(rule, metric, other, segment, rows)

    def _members(self, rule: Rule, other: str) -> Iterator[tuple[str, list[Integers]]]:
        """Yield each segment, with the rows of its users in the candidate and the other model."""
        if other:
            shared = self.users_with(other)
            rows, users = shared.rows, shared.users
        else:
            values = self.parts["candidate"].per_user
            rows, users = [np.flatnonzero(values.counted)], values.evaluated_users
        if rule.segments is None:
            yield "", rows
            return
        for divided in self._segments(rule, users, rows):
            for code, name in enumerate(divided.names):
                chosen = divided.codes == code
                title = f"{divided.title} {name}".strip()
                yield title, [one[chosen] for one in rows]

    def _segments(self, rule: Rule, users: Any, rows: list[Integers]) -> list[Segments]:
        """Divide users into the segments that a rule names."""
        named = str(rule.segments)
        if named == "newcomers":
            if len(rows) > 1:
                raise self._fault(
                    rule,
                    "only the candidate has newcomers, so there is nothing to "
                    "compare; use at_least",
                )
            values = self.parts["champion"].per_user
            known = values.users[values.counted & values.has_list]
            return [Segments(["newcomers"], np.where(users.isin(known), -1, 0))]
        if named == "activity":
            candidate = self.parts["candidate"]
            if candidate.per_user.n_seen is None:
                raise self._fault(
                    rule,
                    "the numbers of users' training items are not known; evaluate with train",
                )
            return [activity_of(candidate, rows[0])._replace(title="")]
        path, column = self.rules.folder / named, ""
        if not path.exists() and ":" in named:
            text, _, column = named.rpartition(":")
            path = self.rules.folder / text
        found = segmentations(path, users)
        chosen = [one for one in found if not column or one.title == column]
        if not chosen:
            raise self._fault(
                rule,
                f"{path} has no column {column!r}; it has {', '.join(one.title for one in found)}",
            )
        return chosen

    def _test(
        self, rule: Rule, metric: str, other: str, segment: str, rows: list[Integers]
    ) -> dict[str, Any]:
        """Return the test of a rule for some users, without its verdict."""
        a = self.parts["candidate"]
        b = self.parts[other] if other else None
        traits = a.traits_of(metric)
        is_paired = traits.per_user
        distance: Callable[[float], Distance]
        losses, defined = np.zeros(0), np.zeros(0, bool)
        if is_paired:
            if b is None:
                of_a = linear_in(metric, a, rows[0])
                of_b = np.zeros(len(of_a))
            else:
                pair = (a, rows[0]), (b, rows[1])
                of_a, of_b = linear_pair(metric, *pair)
                losses = values_in(metric, *pair[1]) - values_in(metric, *pair[0])
            defined = ~(np.isnan(of_a) | np.isnan(of_b))
            of_a, of_b = of_a[defined], of_b[defined]
            n_users = len(of_a)
            means = [float(one.mean()) if n_users else math.nan for one in (of_a, of_b)]
            distance = partial(values_distance, of_a, of_b)
        else:
            of_a = of_b = np.zeros(0)
            row = a.row_of(metric)
            n_users, means = a.count(row), [a.value(row), 0.0]
            if b is None:
                distance = partial(replicates_distance, (a, a), metric, True)
            else:
                if any(self.users_with(other).left_out.values()):
                    raise self._fault(
                        rule,
                        f"{metric} is about all users together, and the models were evaluated for "
                        "different users; evaluate both for the same",
                    )
                means[1] = b.value(b.row_of(metric))
                distance = partial(replicates_distance, (a, b), metric, True)
        too_few = bool(segment) and n_users < rule.min_users
        sign = 1.0 if traits.higher_is_better else -1.0
        found: Distance
        if too_few:
            found = _UNKNOWN
        elif rule.more_than is not None:
            loses = exceed(sign * losses[defined], rule.more_than).astype(np.float64)
            share, error, freedom = values_distance(loses, np.zeros(len(loses)), 1.0)
            found = rule.size - share, error, freedom
        elif b is None:
            mean, error, freedom = distance(1.0 if is_paired else 0.0)  # only the mean of a
            direction = 1 if rule.asks == "at_least" else -1
            found = direction * (mean - rule.size), error, freedom
        else:
            found = self._beyond(rule, distance, means[1], traits.higher_is_better)
        return {
            "rule": str(rule),
            "segment": segment,
            "against": other,
            "n_users": n_users,
            "candidate": means[0],
            "other": means[1] if other else math.nan,
            "difference": means[0] - means[1] if other else math.nan,
            "distance": found,
            "verdict": _TOO_FEW if too_few else None,
            "level": rule.level,
            "is_paired": is_paired,
        }

    def _beyond(
        self, rule: Rule, distance: Callable[[float], Distance], mean: float, higher: bool
    ) -> Distance:
        """Return how far the candidate is beyond a margin, in the direction that is better."""
        sign = 1.0 if higher else -1.0
        margin: Margin = rule.size
        is_wide = margin.absolute >= mean > 0 and rule.segments is None
        if higher and rule.asks == "not_worse_by" and is_wide:
            raise self._fault(
                rule,
                f"the margin is not below the other model's mean, {mean:.5g}, so every model would "
                "pass; a percentage ends in %",
            )
        if margin.share and not mean > 0:
            raise self._fault(
                rule,
                f"the other model's mean is {mean:g}, of which there is no percentage; give the "
                "margin as a number",
            )
        direction = 1 if rule.asks == "better_by" else -1
        excess, error, freedom = distance(1 + sign * direction * margin.share)
        return sign * excess - direction * margin.absolute, error, freedom

    @staticmethod
    def _fault(rule: Rule, message: str) -> InvalidDataError:
        return InvalidDataError(f"the rule {rule}: {message}", argument="rule")
