"""The command ``metrics``: list the metrics, describe one, or show a convention."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from ..errors import InvalidDataError
from .options import Printing
from .terminal import echo

if TYPE_CHECKING:
    from ..metrics import Definition

SYMBOLS = (
    "k: cut-off; r: rank; g, h: gain of the item at a rank, and whether it is relevant (g > 0);\n"
    "n: relevant items of the user; C: candidate items of the user; N: items of the catalogue"
)


def metrics(name: str | None = None, *, convention: str | None = None, printing: Printing) -> None:
    """List the metrics, describe one, or show what another library's convention changes.

    Example: sparse-eval metrics ndcg

    Parameters
    ----------
    name
        A metric to show in detail.
    convention
        Show how a convention differs; `all` lists the conventions.
    """
    import pandas as pd

    from ..metrics import CONVENTIONS, REGISTRY, convention_named
    from ..metrics.registry import definition, load_extensions

    load_extensions()
    entry = None if name is None else definition(re.split("[@(]", name)[0])
    if name is not None and convention is not None:
        raise InvalidDataError("give either a metric or --convention, not both")
    if convention == "all":
        names = [(rules.name, rules.library) for rules in CONVENTIONS.values()]
        printing.table(pd.DataFrame(names, columns=["convention", "of"]))
    elif convention is not None:
        rules = convention_named(convention)
        rows = rules.differences()
        if not rows:
            raise InvalidDataError(f"{convention!r} is the default, without --convention")
        printing.table(pd.DataFrame(rows, columns=["what differs", rules.name, "standard"]))
    elif entry is None:
        facts = [
            (entry.spelling, entry.text, ", ".join(option.name for option in entry.options),
             entry.description)
            for entry in REGISTRY.values()
        ]  # fmt: skip
        printing.table(pd.DataFrame(facts, columns=["metric", "formula", "options", "meaning"]))
        if printing.for_people:
            echo(f"\n{SYMBOLS}")
    else:
        printing.table(pd.DataFrame(facts_of(entry), columns=["fact", "value"]))


def facts_of(entry: Definition) -> list[tuple[str, str]]:
    """Return the facts about a metric as pairs of a name and a text."""
    from ..metrics.registry import ALIASES, ALIASES_WITH_OPTION

    cutoffs = {
        "required": "required",
        "optional": "optional: the whole list by default",
        "none": "none: uses whole lists",
    }
    defaults = {option.name: option.default for option in entry.options}
    lower, most = entry.range
    upper = most(defaults) if callable(most) else most
    reach = f"{lower:g} and above" if upper == math.inf else f"{lower:g} to {upper:g}"
    if callable(most):
        reach += ", above with other options"
    needs = [*entry.needs, *(f"{need} ({option.name}={value})"
             for option in entry.options for value, need in option.needs.items())]  # fmt: skip
    arguments = {option.name: option.value(option.default) for option in entry.options}
    others = [alias for alias, names in ALIASES.items() if names == (entry.name,)]
    others += [
        f"{alias} ({option})"
        for alias, (name, option) in ALIASES_WITH_OPTION.items()
        if name == entry.name
    ]
    facts = {
        "metric": entry.name,
        "also called": ", ".join(others),
        "in plain words": entry.plain,
        "meaning": entry.description,
        "formula": entry.text,
        "cut-off": cutoffs[entry.cutoff],
        "values": "for each user" if entry.per_user else "one for all users together",
        "range": reach,
        "needs": ", ".join(needs) or "nothing else",
        "expectation over tied items": "yes" if entry.formula.averages_ties(arguments) else "no",
    }
    for option in entry.options:
        facts[f"option {option.name}"] = f"{option.allowed}: {option.description}"
    return [(name, fact) for name, fact in [*facts.items(), ("source", entry.source)] if fact]
