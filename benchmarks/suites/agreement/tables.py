"""The tables of the suite `agreement`."""

import re
from collections.abc import Iterable
from typing import Any

from harness.format import label, markdown


def agreement(report: dict[str, Any]) -> str:
    """Return a table of the libraries, and its footnotes."""
    footnotes: dict[str, int] = {}
    body = []
    for name, found in report["libraries"].items():
        title = label(report, name) + marks(notes(found, "*"), footnotes)
        equal, others = [], []
        for metric in families(found):
            compared = any(family(one) == metric for one in found["metrics"])
            (equal if compared else others).append(cell(found, metric, footnotes))
        texts = (", ".join(equal), ", ".join(others))
        body.append((title, found["convention"] or "none", str(found["n_cases"]), *texts))
    columns = ("library", "convention", "cases", "equal", "not compared")
    table = markdown(columns, body, text=(0, 1, 3, 4))
    return "\n\n".join([table, "\n".join(f"{n}. {note}" for note, n in footnotes.items())])


def families(found: dict[str, Any]) -> list[str]:
    """Return the metrics of a library, each once for all its options."""
    return list(dict.fromkeys(map(family, (*found["metrics"], *found["not_compared"]))))


def cell(found: dict[str, Any], metric: str, footnotes: dict[str, int]) -> str:
    """Return the name of a metric, with the footnotes of all its options."""
    options = (*found["metrics"], *found["not_compared"])
    told = [note for name in options if family(name) == metric for note in notes(found, name)]
    return f"`{metric}`" + marks(told, footnotes)


def notes(found: dict[str, Any], metric: str) -> list[str]:
    told = [f"where {why[0].lower()}{why[1:]}" for why in found["needs"].get(metric, ())]
    if metric in found["not_compared"]:
        told.append(f"`{metric}` is not compared: {found['not_compared'][metric]}")
    if metric == "*" and found["imprecise"]:
        told.append(f"to {found['tolerance']:g}: {found['imprecise']}")
    if metric == "*" and found.get("n_refused"):
        told.append(
            "it counts a pair stored with a zero as relevant, and our convention raises an "
            "error: compared without such pairs"
        )
    return told


def family(metric: str) -> str:
    return re.split("[(@ ]", metric)[0]


def marks(notes: Iterable[str], footnotes: dict[str, int]) -> str:
    """Return the superscripts of some footnotes; the same text has the same number."""
    numbers = sorted({footnotes.setdefault(note, len(footnotes) + 1) for note in notes})
    return f"<sup>{', '.join(map(str, numbers))}</sup>" if numbers else ""


TABLES = {"agreement": agreement}
