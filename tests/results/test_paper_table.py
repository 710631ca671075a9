"""Test comparisons as tables for papers."""

import math

import numpy as np
import pandas as pd
import pytest
import reporting
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.results.comparison import Comparison


@pytest.fixture(scope="module")
def compared():
    return se.compare(reporting.three(), "ndcg@10")


def rows_of(text):
    body = text.partition("\\midrule\n")[2].partition("\\bottomrule")[0]
    rows = [line.removesuffix(" \\\\").split("&") for line in body.splitlines()]
    return {model.strip(): [cell.strip() for cell in cells] for model, *cells in rows}


def test_means_best_and_notes(compared):
    evs = reporting.three()
    text = compared.to_latex(digits=6, caption="Three models.", label="tab:three")
    rows = rows_of(text)
    assert list(rows) == list(evs)
    best = max(evs, key=lambda name: evs[name]["ndcg@10"])
    for model, (cell,) in rows.items():
        mean = f"{evs[model]['ndcg@10']:.6f}"
        assert cell == (f"\\textbf{{{mean}}}" if model == best else mean)
    assert "\\label{tab:three}\n\\begin{tabular}{lr}\n\\toprule\n model " in text
    assert "\\caption{Three models.}\n\\label" in text
    # Notes are below the table, where they wrap: as wide as a column of a paper.
    below = text.partition("\\end{tabular}")[2]
    assert "\\footnotesize\nMeans over 231 users; the best in bold.\n\\end{table}" in below
    assert "hline" not in text
    lines = compared.to_markdown(digits=3).splitlines()
    assert [line for line in lines if "**" in line] == [
        f"| {best}    | **{evs[best]['ndcg@10']:.3f}** |"
    ]
    assert lines[-1] == "Means over 231 users; the best in bold."
    with raises(InvalidDataError, argument="digits"):
        compared.to_latex(digits=0)


def test_signs_that_latex_reads_otherwise():
    names = [
        '<a> | `b` "c"',
        "two\nlines",
        "--seed --- 3",
        "50%_x&y",
        "a{b}\\c~d^e#f$",
        "\x1b[1m\\hline",
    ]
    evs = dict.fromkeys(names, reporting.evaluate(1, 0.3))
    compared = se.compare(evs, "ndcg@10")
    text = compared.to_latex()
    grave, quote = "\\textasciigrave{}", "\\symbol{34}"
    for expected in (
        f" \\textless{{}}a\\textgreater{{}} \\textbar{{}} {grave}b{grave} {quote}c{quote} ",
        " two lines ",
        " -{}-seed -{}-{}- 3 ",
        " \\textbackslash{}u001b[1m\\textbackslash{}hline ",
        "50\\%\\_x\\&y",
        "a\\{b\\}\\textbackslash{}c\\textasciitilde{}d\\textasciicircum{}e\\#f\\$",
    ):
        assert expected in text
    for expected in ("two lines", '\\<a\\> \\| \\`b\\` "c"'):
        assert expected in compared.to_markdown()


def test_lower_is_better_has_an_arrow_and_negative_means_a_sign():
    evs = {
        name: se.evaluate(
            se.Rankings.from_topk(np.tile(lists, (4, 1))),
            csr_matrix(np.eye(4, 6)),
            ["mean_rank", "utility"],
        )
        for name, lists in (("early", np.arange(6)), ("late", np.arange(6)[::-1]))
    }
    compared = se.compare(evs)
    rows = rows_of(compared.to_latex())
    assert [rows[name][0].startswith("\\textbf") for name in evs] == [True, False]
    assert "mean\\_rank $\\downarrow$ &" in compared.to_latex()
    assert "mean\\_rank ↓ |" in compared.to_markdown()
    assert "(of ↓ the lowest)" in compared.to_markdown()
    assert "(of $\\downarrow$ the lowest)" in compared.to_latex()
    mean = evs["late"]["utility"]
    assert mean < 0
    assert f"$-${-mean:.2f}" in compared.to_latex(digits=2)
    assert f"{mean:.2f}" in compared.to_markdown(digits=2)


def test_refuses_means_of_other_users():
    validation = csr_matrix(np.array([[1, 2, 0, 0], [2, 1, 0, 0], [0, 1, 2, 0]], float))
    lists = {
        "a": [[0, 1, 2], [1, 0, 2], [2, 1, 0]],
        "b": [[0, 1, 2], [1, 0, 2], [3]],
        "c": [[3], [0, 1, 2], [2, 1, 0]],
    }
    evs = {name: se.evaluate(ids, validation, "fcp") for name, ids in lists.items()}
    with raises(InvalidDataError):
        se.compare(evs).to_latex()


def test_a_model_without_a_mean_is_not_the_best():
    """Whatever comes first, and however often it is compared."""
    none = math.nan
    rows = [("x", "y", none, 0.25), ("x", "z", none, 0.5), ("y", "z", 0.25, 0.5)]
    columns = ["a", "b", "mean_a", "mean_b"]
    frame = pd.DataFrame(rows, columns=columns).assign(metric="m")
    for higher, best in ((True, "z"), (False, "y")):
        compared = Comparison(
            ("x", "y", "z"), frame, 4, "t", "holm", 0.95, higher_is_better={"m": higher}
        )
        cells = rows_of(compared.to_latex(digits=2))
        assert cells["x"] == ["--"]
        assert [name for name, row in cells.items() if "textbf" in row[0]] == [best]
        assert ("**0.50**" in compared.to_markdown(digits=2)) == higher
