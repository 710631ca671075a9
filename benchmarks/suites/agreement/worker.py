"""Compute one library's own numbers on the cases, in the library's environment.

The library's script, in the folder `rivals`, has

    METRICS      our name of a metric -> what `values` takes for it. `@k` stands for the case's
                 cut-off, a following " (judged)" for judged_only=
    values       a function of this and a `Case`, which calls the library, and returns a value for
                 each user (None if the library leaves the user out), or only the mean
    FUNCTIONS    further metrics: our name -> a function of a `Case`

and `libraries.toml` has the rules of the comparison.

Each case is measured without the explicit zeros of its gains. If it has any, it is measured again
with them: scripts read the gains for a library from `Case.pairs`, which has the zeros the second
time. Our convention must give the same number, or raise the error for stored zeros.

Cases and metrics are only left out because of an entry in `libraries.toml`, which the results
repeat.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from .case import Case


def answer(library: Any, rules: dict[str, Any], cases: list[dict[str, Any]]) -> dict[str, Any]:
    needs: dict[str, dict[str, str]] = {
        metric: entry
        for metrics, entry in rules.get("needs", {}).items()
        for metric in metrics.split()
    }
    metrics = {
        metric: partial(library.values, theirs)
        for metric, theirs in getattr(library, "METRICS", {}).items()
    } | getattr(library, "FUNCTIONS", {})
    if unknown := set(needs) - set(metrics) - {"*"}:
        raise KeyError(f"{unknown} need something, but are no metrics")

    def measure(case: Case) -> dict[str, Any]:
        return {
            metric: call(case)
            for metric, call in metrics.items()
            if all(getattr(case, need) for need in needs.get("*", {}) | needs.get(metric, {}))
        }

    read = [make_case(**raw) for raw in cases]
    return {
        "ties": rules.get("ties"),
        "needs": {metric: reasons(entry) for metric, entry in needs.items()},
        "cases": [measure(case) for case in read],
        "zeros": [
            measure(replace(case, with_zeros=True)) if case.has_zeros else {} for case in read
        ],
    }


def reasons(needs: dict[str, str]) -> list[str]:
    """Return the needs in words, except needs without a reason."""
    return [f"{getattr(Case, need).__doc__[:-1]}: {why}" for need, why in needs.items() if why]


def make_case(*, kind: str, validation: list[Any], **parts: Any) -> Case:
    return Case(stored=[dict(row) for row in validation], **parts)
