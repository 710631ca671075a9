"""A comparison as papers print it: a row for each model, a column for each metric."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count
from string import ascii_lowercase
from typing import TYPE_CHECKING

from ..core.arguments import check_whole
from ..core.formatting import text_table
from ..errors import InvalidDataError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pandas as pd

#: What LaTeX reads as something else, and how it is written.
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        # These are other signs in the fonts that LaTeX starts with, or a shorthand of babel's.
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\textasciigrave{}",
        '"': r"\symbol{34}",
        "\0": "{}",
        "↓": r"$\downarrow$",
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    }
)
#: The same of Markdown, within a table.
_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_|<>[]"})


@dataclass(frozen=True, eq=False)
class PaperTable:
    """The means of a comparison, the best ones, and which differences are significant.

    Parameters
    ----------
    models : sequence of str
    table : pandas.DataFrame
        That of a comparison.
    higher_is_better : mapping of str to bool
        By metric.
    candidates : str or None
        What the candidates are, None for all items.
    notes : sequence of str
        What is written below.

    Raises
    ------
    InvalidDataError
        If a model has several means of a metric, as it is compared with others on other users.
    """

    models: Sequence[str]
    table: pd.DataFrame
    higher_is_better: Mapping[str, bool]
    candidates: str | None
    notes: Sequence[str]

    def _column(self, metric: str, letters: Mapping[str, str]) -> list[tuple[float, bool, str]]:
        """Return each model's mean, whether none is better, and the letters of worse models."""
        means: dict[str, float] = {}
        worse: dict[str, set[str]] = {model: set() for model in self.models}
        for row in self.table[self.table["metric"] == metric].to_dict("records"):
            for side in ("a", "b"):
                model, mean = row[side], float(row[f"mean_{side}"])
                before = means.setdefault(model, mean)
                if before != mean and not (math.isnan(before) and math.isnan(mean)):
                    raise InvalidDataError(
                        f"{metric} of {model} has other means beside other models, because it is "
                        "not defined for the same users of all; compare two models, or leave the "
                        "metric out"
                    )
            if row["better"]:
                worse[row["better"]] |= {row["a"], row["b"]} - {row["better"]}
        known = [mean for mean in means.values() if not math.isnan(mean)]
        best = (max if self.higher_is_better[metric] else min)(known, default=math.nan)
        # Numbers are told apart without brackets, which LaTeX takes for an option of the line.
        between = "" if len(self.models) <= len(ascii_lowercase) else ","
        marks = {
            model: between.join(letters[other] for other in self.models if other in beaten)
            for model, beaten in worse.items()
        }
        return [(means[model], means[model] == best, marks[model]) for model in self.models]

    def _rows(
        self, digits: int, escape: Callable[[str], str], arrow: str, bold: str, raised: str
    ) -> list[list[str]]:
        """Return the headings, and each model's letter, name and cells."""
        check_whole("digits", digits, 1, 16)
        few = len(self.models) <= len(ascii_lowercase)
        letters = dict(
            zip(self.models, ascii_lowercase if few else map(str, count(1)), strict=False)
        )
        among = f" ({self.candidates})" if self.candidates else ""
        headings, columns = ["", "model"], []
        for metric in dict.fromkeys(self.table["metric"]):
            headings.append(escape(metric + among))
            headings[-1] += "" if self.higher_is_better[metric] else arrow
            columns.append(self._column(metric, letters))
        rows = [headings]
        for model, *cells in zip(self.models, *columns, strict=True):
            texts = [letters[model], escape(model)]
            for mean, is_best, marks in cells:
                text = "–" if math.isnan(mean) else f"{mean:.{digits}f}"
                if escape is _latex:
                    text = text.replace("-", "$-$").replace("–", "--")
                text = bold.format(text) if is_best else text
                texts.append(text + (raised.format(marks) if marks else ""))
            rows.append(texts)
        return rows

    def latex(self, digits: int, caption: str | None, label: str | None) -> str:
        """Return what `Comparison.to_latex` does."""
        arrow, bold, raised = r" $\downarrow$", r"\textbf{{{}}}", r"\textsuperscript{{{}}}"
        rows = self._rows(digits, _latex, arrow, bold, raised)
        headings, *lines = [" & ".join(row) + r" \\" for row in rows]
        # Below the table rather than in it, so that they fit into a column of the paper.
        notes = "\\\\\n".join(map(_latex, self.notes))
        head = [r"\begin{table}", r"\centering"]
        for name, text in (("caption", caption), ("label", label)):
            head += [] if text is None else [rf"\{name}{{{text}}}"]
        columns = "r" * (len(rows[0]) - 2)
        head += [rf"\begin{{tabular}}{{ll{columns}}}", r"\toprule", headings, r"\midrule"]
        tail = [r"\bottomrule", r"\end{tabular}", "", r"\smallskip", r"\footnotesize", notes]
        return "\n".join([*head, *lines, *tail, r"\end{table}", ""])

    def markdown(self, digits: int) -> str:
        """Return what `Comparison.to_markdown` does."""
        headings, *rows = self._rows(digits, _markdown, " ↓", "**{}**", "<sup>{}</sup>")
        aligned = ["left", "left", *["right"] * (len(headings) - 2)]
        table = text_table(rows, headings, aligned, "pipe")
        return "\n\n".join([table, *map(_markdown, self.notes)]) + "\n"


def _latex(text: str) -> str:
    """Write text in LaTeX, in one line, its hyphens side by side as they are."""
    return " ".join(text.split()).replace("--", "-\0-").replace("--", "-\0-").translate(_LATEX)


def _markdown(text: str) -> str:
    """Write text in Markdown, in one line."""
    return " ".join(text.split()).translate(_MARKDOWN)
