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
    rows = {name: Agreement(found) for name, found in report["libraries"].items()}
    counts = Counter(metric for row in rows.values() for metric in row.families())
    footnotes: dict[str, int] = {}
    tables = []
    others = counts.keys() - OVER_LISTS - OF_TREC_EVAL
    for kind in (others, OVER_LISTS, OF_TREC_EVAL):
        columns = [name for name, _ in counts.most_common() if name in kind]
        body = []
        for name, row in rows.items():
            cells = [row.cell(metric, footnotes) for metric in columns]
            if any(cells):
                title = label(report, name) + marks(row.notes("*"), footnotes)
                body.append((title, row.convention, str(row.n_cases), *cells))
        if columns:
            tables.append(markdown(("", "convention", "cases", *columns), body))
    notes = "\n".join(f"{number}. {note}" for note, number in footnotes.items())
    return "\n\n".join([*tables, notes])


class Agreement:
    """The result of the comparison with one library."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.found = found
        self.convention = found["convention"] or "none"
        self.n_cases = found["n_cases"]

    def families(self) -> list[str]:
        """Return the metrics of the library, each once for all its options."""
        names = (*self.found["metrics"], *self.found["not_compared"])
        return list(dict.fromkeys(map(family, names)))

    def cell(self, metric: str, footnotes: dict[str, int]) -> str:
        compared = [name for name in self.found["metrics"] if family(name) == metric]
        others = [name for name in self.found["not_compared"] if family(name) == metric]
        notes = [note for name in (*compared, *others) for note in self.notes(name)]
        return ("equal" if compared else "") + marks(notes, footnotes)

    def notes(self, metric: str) -> list[str]:
        notes = [f"where {why[0].lower()}{why[1:]}" for why in self.found["needs"].get(metric, ())]
        if metric in self.found["not_compared"]:
            notes.append(f"`{metric}` is not compared: {self.found['not_compared'][metric]}")
        if metric == "*" and self.found["imprecise"]:
            notes.append(f"to {self.found['tolerance']:g}: {self.found['imprecise']}")
        if metric == "*" and self.found.get("n_refused"):
            notes.append(
                "it counts a pair stored with a zero as relevant, and our convention raises an "
                "error: compared without such pairs"
            )
        return notes


def family(metric: str) -> str:
    return re.split("[(@]", metric)[0]


def marks(notes: Iterable[str], footnotes: dict[str, int]) -> str:
    """Return the superscripts of some footnotes; the same text has the same number."""
    numbers = sorted({footnotes.setdefault(note, len(footnotes) + 1) for note in notes})
    return f"<sup>{', '.join(map(str, numbers))}</sup>" if numbers else ""


TABLES = {"agreement": agreement}
