"""A comparison as papers print it: a row for each model, a column for each metric."""

from __future__ import annotations

import math
from string import ascii_lowercase
from typing import TYPE_CHECKING, NamedTuple

from ..core.arguments import check_whole
from ..core.formatting import text_table
from ..errors import InvalidDataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

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


class Cell(NamedTuple):
    """The mean of a metric, whether none is better, and the letters of models that are worse."""

    mean: float
    is_best: bool
    better_than: str

    def text(self, digits: int) -> str:
        """Return the mean as text, a dash where there is none."""
        return "–" if math.isnan(self.mean) else f"{self.mean:.{digits}f}"


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

    def __init__(
        self,
        models: Sequence[str],
        table: pd.DataFrame,
        higher_is_better: Mapping[str, bool],
        candidates: str | None,
        notes: Sequence[str],
    ) -> None:
        self.models, self.table, self.notes = models, table, notes
        self.higher_is_better = higher_is_better
        # Numbers if there are too many; without brackets, LaTeX's for an option of the line.
        few, n = len(models) <= len(ascii_lowercase), len(models)
        letters = ascii_lowercase[:n] if few else map(str, range(1, n + 1))
        self.letters = dict(zip(models, letters, strict=True))
        self._between = "" if few else ","
        self.metrics = list(dict.fromkeys(table["metric"]))
        self.headings = [name + (f" ({candidates})" if candidates else "") for name in self.metrics]
        self.columns = {metric: self._column(metric) for metric in self.metrics}

    def _column(self, metric: str) -> list[Cell]:
        """Return the cells of a metric, in the order of the models."""
        rows = self.table[self.table["metric"] == metric].to_dict("records")
        means: dict[str, float] = {}
        worse: dict[str, list[str]] = {model: [] for model in self.models}
        for row in rows:
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
                beaten = row["b"] if row["better"] == row["a"] else row["a"]
                worse[row["better"]].append(beaten)
        higher = self.higher_is_better[metric]
        known = [mean for mean in means.values() if not math.isnan(mean)]
        best = (max if higher else min)(known, default=math.nan)
        cells = []
        for model in self.models:
            marks = [self.letters[other] for other in self.models if other in worse[model]]
            cells.append(Cell(means[model], means[model] == best, self._between.join(marks)))
        return cells

    def _rows(self) -> Iterator[tuple[str, str, list[Cell]]]:
        """Return each model's letter, name and cells."""
        for i, model in enumerate(self.models):
            yield self.letters[model], model, [self.columns[name][i] for name in self.metrics]

    def latex(self, digits: int, caption: str | None, label: str | None) -> str:
        """Return what `Comparison.to_latex` does."""
        check_whole("digits", digits, 1, 16)
        headings = ["", "model", *(_latex(name) for name in self.headings)]
        for place, metric in enumerate(self.metrics, start=2):
            headings[place] += "" if self.higher_is_better[metric] else r" $\downarrow$"
        lines = [
            r"\begin{table}",
            r"\centering",
            *([] if caption is None else [rf"\caption{{{caption}}}"]),
            *([] if label is None else [rf"\label{{{label}}}"]),
            rf"\begin{{tabular}}{{ll{'r' * len(self.metrics)}}}",
            r"\toprule",
            " & ".join(headings) + r" \\",
            r"\midrule",
        ]
        for letter, model, cells in self._rows():
            texts = [_latex_cell(cell, digits) for cell in cells]
            lines.append(" & ".join([letter, _latex(model), *texts]) + r" \\")
        # Below the table rather than in it, so that they fit into a column of the paper.
        notes = [f"{_latex(note)}\\\\" for note in self.notes]
        lines += [r"\bottomrule", r"\end{tabular}", "", r"\smallskip", r"\footnotesize", *notes]
        lines[-1] = lines[-1].removesuffix("\\\\")
        return "\n".join([*lines, r"\end{table}", ""])

    def markdown(self, digits: int) -> str:
        """Return what `Comparison.to_markdown` does."""
        check_whole("digits", digits, 1, 16)
        rows = [
            [letter, _markdown(model), *(_markdown_cell(cell, digits) for cell in cells)]
            for letter, model, cells in self._rows()
        ]
        headings = ["", "model", *map(_markdown, self.headings)]
        for place, metric in enumerate(self.metrics, start=2):
            headings[place] += "" if self.higher_is_better[metric] else " ↓"
        table = text_table(rows, headings, ["left", "left", *["right"] * len(self.metrics)], "pipe")
        notes = map(_markdown, self.notes)
        return "\n\n".join([table, *notes]) + "\n"


def _latex(text: str) -> str:
    """Write text in LaTeX, in one line, its hyphens side by side as they are."""
    return " ".join(text.split()).replace("--", "-\0-").replace("--", "-\0-").translate(_LATEX)


def _markdown(text: str) -> str:
    """Write text in Markdown, in one line."""
    return " ".join(text.split()).translate(_MARKDOWN)


def _latex_cell(cell: Cell, digits: int) -> str:
    text = cell.text(digits).replace("-", "$-$").replace("–", "--")
    text = rf"\textbf{{{text}}}" if cell.is_best else text
    return text + (rf"\textsuperscript{{{cell.better_than}}}" if cell.better_than else "")


def _markdown_cell(cell: Cell, digits: int) -> str:
    text = cell.text(digits)
    text = f"**{text}**" if cell.is_best else text
    return text + (f"<sup>{cell.better_than}</sup>" if cell.better_than else "")
