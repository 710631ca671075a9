"""The tables of the suite `agreement`."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

from harness.format import label, markdown

#: Metrics of recommended items, relevant or not.
OVER_LISTS = {
    "alpha_ndcg", "calibration", "categorical_diversity", "coverage", "diversity", "entropy",
    "err_ia", "gini", "map_ia", "novelty", "personalization", "popularity", "serendipity",
    "surprisal", "user_coverage",
}  # fmt: skip

#: Metrics that only trec_eval has.
OF_TREC_EVAL = {
    "bpref", "infap", "iprec_at_recall", "judged", "num_nonrel_judged_ret", "num_rel",
    "num_rel_ret", "num_ret", "set_f", "set_map", "set_precision", "set_relative_precision",
    "utility",
}  # fmt: skip


def agreement(report: dict[str, Any]) -> str:
    """Return a table for each kind of metrics, and their footnotes."""
    libraries = report["libraries"]
    counts = Counter(metric for found in libraries.values() for metric in families(found))
    footnotes: dict[str, int] = {}
    tables = []
    others = counts.keys() - OVER_LISTS - OF_TREC_EVAL
    for kind in (others, OVER_LISTS, OF_TREC_EVAL):
        columns = [name for name, _ in counts.most_common() if name in kind]
        body = []
        for name, found in libraries.items():
            cells = [cell(found, metric, footnotes) for metric in columns]
            if any(cells):
                title = label(report, name) + marks(notes(found, "*"), footnotes)
                body.append((title, found["convention"] or "none", str(found["n_cases"]), *cells))
        if columns:
            tables.append(markdown(("", "convention", "cases", *columns), body))
    return "\n\n".join([*tables, "\n".join(f"{n}. {note}" for note, n in footnotes.items())])


def families(found: dict[str, Any]) -> list[str]:
    """Return the metrics of a library, each once for all its options."""
    return list(dict.fromkeys(map(family, (*found["metrics"], *found["not_compared"]))))


def cell(found: dict[str, Any], metric: str, footnotes: dict[str, int]) -> str:
    compared = [name for name in found["metrics"] if family(name) == metric]
    others = [name for name in found["not_compared"] if family(name) == metric]
    told = [note for name in (*compared, *others) for note in notes(found, name)]
    return ("equal" if compared else "") + marks(told, footnotes)


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
    return re.split("[(@]", metric)[0]


def marks(notes: Iterable[str], footnotes: dict[str, int]) -> str:
    """Return the superscripts of some footnotes; the same text has the same number."""
    numbers = sorted({footnotes.setdefault(note, len(footnotes) + 1) for note in notes})
    return f"<sup>{', '.join(map(str, numbers))}</sup>" if numbers else ""


TABLES = {"agreement": agreement}
