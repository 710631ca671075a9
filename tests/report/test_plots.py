"""Charts draw the numbers of the evaluations, and are the same bytes as files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import reporting
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image
from raising import raises
from scipy import stats
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval import plots
from sparse_eval.errors import InvalidDataError, InvalidMetricError, OutputError, SparseEvalError
from sparse_eval.report.style import distinct_names, pieces, short_names, shorten


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def models() -> dict[str, se.Evaluation]:
    return reporting.three()


@pytest.fixture
def ax() -> Axes:
    return Figure().subplots()


def points(container: Any) -> np.ndarray:
    """Return the markers of error bars, and the ends of the bars."""
    line, _, bars = container
    segments = [segment for bar in bars for segment in bar.get_segments() if len(segment)]
    ends = np.concatenate(segments)
    return np.concatenate([np.column_stack(line.get_data()), ends]).astype(np.float64)


def test_means(models: dict[str, se.Evaluation], ax: Axes) -> None:
    assert plots.means(models, "ndcg@10", ax=ax) is ax
    for place, (container, ev) in enumerate(zip(ax.containers, models.values(), strict=True)):
        row = ev.summary().loc["ndcg@10"]
        expected = [[row["mean"], place], [row["ci_low"], place], [row["ci_high"], place]]
        assert points(container) == pytest.approx(np.array(expected))
    assert [text.get_text() for text in ax.texts] == list(models)
    for nothing in ({}, [models["good"]]):
        with raises(InvalidDataError):
            plots.means(nothing, "ndcg@10", ax=ax)  # type: ignore[arg-type]


def test_differences(models: dict[str, se.Evaluation], ax: Axes) -> None:
    compared = se.compare(models, "ndcg@10")
    plots.differences(compared, "ndcg@10", ax=ax)
    for container, row in zip(ax.containers, compared.table.to_dict("records"), strict=True):
        drawn = points(container)[:, 0]
        assert drawn == pytest.approx([row["difference"], row["ci_low"], row["ci_high"]])
        filled = container[0].get_markerfacecolor() != "none"
        assert filled == (row["better"] != "")
    assert [text.get_text() for text in ax.texts] == ["good − fair", "good − poor", "fair − poor"]
    with raises(InvalidDataError):
        plots.differences(compared, "recall@5", ax=ax)


def test_by_cutoff(models: dict[str, se.Evaluation], ax: Axes) -> None:
    plots.by_cutoff(models, "ndcg", ax=ax)
    for line, band, ev in zip(ax.lines, ax.collections, models.values(), strict=True):
        assert line.get_xdata() == pytest.approx([5, 10])
        assert line.get_ydata() == pytest.approx([ev["ndcg@5"], ev["ndcg@10"]])
        rows = ev.summary().loc[["ndcg@5", "ndcg@10"]]
        reached = {tuple(corner) for corner in band.get_paths()[0].vertices.round(9)}
        for k, low, high in zip((5, 10), rows["ci_low"], rows["ci_high"], strict=True):
            assert {(k, round(low, 9)), (k, round(high, 9))} <= reached
    with raises(InvalidDataError):
        plots.by_cutoff(models, "map", ax=ax)


def test_distribution(models: dict[str, se.Evaluation], ax: Axes) -> None:
    plots.distribution({"good": models["good"]}, "ndcg@10", ax=ax)
    values = models["good"].values("ndcg@10")
    values = values[~np.isnan(values)]
    (line,) = ax.lines
    for x, share in zip(*line.get_data(), strict=True):
        assert share == pytest.approx((values >= x).mean())
    with raises(InvalidMetricError, metric="coverage@10"):
        plots.distribution(models, "coverage@10", ax=ax)


def test_losers(models: dict[str, se.Evaluation], ax: Axes) -> None:
    fair, poor = models["fair"], models["poor"]
    plots.losers({"fair": fair, "poor": poor}, "ndcg@10", 0.1, ax=ax)
    differences = fair.values("ndcg@10") - poor.values("ndcg@10")
    ordered = np.sort(differences[fair.counted])
    shares, drawn = ax.lines[0].get_data()
    places = np.rint(np.asarray(shares, float) * len(ordered) / 100 - 0.5).astype(int)
    assert drawn == pytest.approx(ordered[places])
    (shaded,) = ax.collections
    (corners,) = (path.vertices for path in shaded.get_paths())
    (row,) = fair.losers(poor, "ndcg@10", 0.1).to_dict("records")
    assert corners[:, 0].max() == pytest.approx(100 * (row["losers"] - 0.5) / len(ordered))
    low, share, high = (f"{100 * row[name]:.1f}" for name in ("ci_low", "share", "ci_high"))
    assert shaded.get_label() == f"{share} % of users lose more than 0.1 ({low} to {high} %)"
    assert ax.get_ylabel() == "ndcg@10: fair − poor"
    with raises(InvalidDataError):
        plots.losers(models, "ndcg@10", ax=ax)


def test_precision_recall(models: dict[str, se.Evaluation], ax: Axes) -> None:
    plots.precision_recall(models, ax=ax)
    for line, ev in zip(ax.lines, models.values(), strict=True):
        curve = ev.precision_recall()
        assert line.get_xdata() == pytest.approx(curve.recall)
        assert line.get_ydata() == pytest.approx(curve.precision)


@pytest.mark.parametrize(
    ("groups", "metric"), [("activity", "ndcg@10"), ("popularity", "recall@5")]
)
def test_by_group(models: dict[str, se.Evaluation], ax: Axes, groups: Any, metric: str) -> None:
    plots.by_group(models, groups, metric, ax=ax)
    for container, ev in zip(ax.containers, models.values(), strict=True):
        table = ev.by(groups).xs(metric, level="metric")
        table["std"] = table["std"].where(table["n_users"] >= 10)
        half = stats.t.ppf(0.975, table["n_users"] - 1) * table["std"] / np.sqrt(table["n_users"])
        found = points(container)
        n = len(table)
        assert found[:n, 1] == pytest.approx(table["mean"])
        ends = np.array([*(table["mean"] - half), *(table["mean"] + half)])
        assert np.sort(found[n:, 1]) == pytest.approx(np.sort(ends[~np.isnan(ends)]))


def test_by_segments_of_your_own(models: dict[str, se.Evaluation], ax: Axes) -> None:
    plans = pd.Series(["free", "paid", None] * 80, name="plan")
    plots.by_group(models, plans, "ndcg@10", ax=ax)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["free", "paid"]
    without = sum(models["good"].counted[2::3])
    assert ax.get_xlabel() == f"plan ({without} users in no segment)"
    for container, ev in zip(ax.containers, models.values(), strict=True):
        expected = ev.by(plans.fillna("none")).xs("ndcg@10", level="metric")
        assert points(container)[:2, 1] == pytest.approx(expected["mean"].loc[["free", "paid"]])
    lists = se.Rankings.from_topk([[0, 1]])
    without = {"a": se.evaluate(lists, csr_matrix([[1, 0]]), "ndcg@10")}
    wrong: list[Any] = [
        (models, pd.DataFrame({"plan": plans, "country": "DE"}), "ndcg@10"),
        (models, "age", "ndcg@10"),
        (without, "activity", "ndcg@10"),
        (models, "popularity", "ndcg@10"),  # by which ndcg cannot be divided
        (models, plans, "coverage@10"),
    ]
    for evs, by, metric in wrong:
        with raises(SparseEvalError):
            plots.by_group(evs, by, metric, ax=ax)


def test_differences_by_segment(models: dict[str, se.Evaluation], ax: Axes) -> None:
    plans = pd.Series(["free", "paid"] * 120, name="plan")
    pair = {name: models[name] for name in ("good", "fair")}
    plots.differences(se.compare(pair, "ndcg@10", by=plans), "ndcg@10", ax=ax)
    assert [text.get_text() for text in ax.texts] == ["plan free", "plan paid"]
    assert ax.get_xlabel() == "ndcg@10: good − fair"
    compared = se.compare(models, "ndcg@10", by=plans)
    other = plots.differences(compared, "ndcg@10", ax=Figure().subplots())
    assert other.texts[0].get_text() == "plan free: good − fair"


def test_short_names_are_told_apart() -> None:
    names = [f"als_factors={n}_alpha=40_reg=0.01_iterations=30_seed=3" for n in (128, 256, 512)]
    short = short_names(names, 24)
    assert len(set(short)) == 3
    assert max(map(len, short)) <= 24
    middle = [f"{'a' * 40}{n}{'b' * 40}" for n in range(3)]
    assert [name[0] for name in short_names(middle, 24)] == ["1", "2", "3"]
    assert short_names(["als", "als"]) == ["als", "als"]
    alike = [f"{'model ' * 8}{end}" for end in ("a b", "a  b")]  # in one line
    assert distinct_names(alike) == alike
    assert distinct_names([f"{'model ' * 8}{end}" for end in "ab"]) == ["model a", "model b"]
    assert shorten("als-factors8-alpha1-reg0.1-seed0", 20) == "als-fa…-reg0.1-seed0"
    assert shorten("two\nlines\x00 ") == "two lines\N{REPLACEMENT CHARACTER}"
    assert shorten(" ") == "(no name)"


@pytest.mark.parametrize("name", ["als_factors=256_seed=3", "a" * 50, "_x", "a\n b", "", "שלום"])
def test_pieces_are_the_whole_name(name: str) -> None:
    assert "".join(pieces(name)) == name
    assert max(map(len, pieces(name)), default=0) <= 20


def test_concentration(models: dict[str, se.Evaluation], ax: Axes) -> None:
    plots.concentration({"good": models["good"]}, ax=ax)
    lists = models["good"].rankings.to_positions()[models["good"].counted]
    counts = np.sort((lists > 0).sum(axis=0).A1)[::-1]
    items, places = ax.lines[0].get_data()
    for x, y in zip(items, places, strict=True):
        assert y == pytest.approx(counts[: round(x * 60)].sum() / counts.sum())
    ranks = reporting.evaluate(1, 0.3, whole=False)
    with raises(InvalidDataError):
        plots.concentration({"ranks": ranks}, ax=ax)


def test_lift(models: dict[str, se.Evaluation], ax: Axes) -> None:
    plots.lift(models, ax=ax)
    for line, ev in zip(ax.lines, models.values(), strict=False):
        assert line.get_xdata() == pytest.approx(ev.summary()["lift"])
    nothing = se.evaluate(se.Rankings.from_topk([[1]]), csr_matrix([[1, 0]]), "mrr@1")
    with raises(InvalidDataError):
        plots.lift({"nothing": nothing}, ax=ax)


def test_learning_curve(ax: Axes) -> None:
    history = pd.DataFrame({"ndcg@5": [0.1, 0.2]}, index=pd.Index([1, 2], name="iteration"))
    plots.learning_curve(history, "ndcg@5", ax=ax)
    assert np.column_stack(ax.lines[0].get_data()).tolist() == [[1, 0.1], [2, 0.2]]
    assert ax.get_xlabel() == "iteration"
    sweep = pd.DataFrame({"file": ["a", "b"], "ndcg@5": [0.1, 0.3], "mrr@5": [0.2, 0.2]})
    plots.learning_curve(sweep, ["ndcg@5", "mrr@5"], ax=ax)
    assert ax.lines[-1].get_ydata().tolist() == [0.2, 0.2]
    assert "checkpoint" in ax.get_xlabel()
    with raises(InvalidDataError):
        plots.learning_curve(sweep, "map@5", ax=ax)


# Charts as files.


def write(models: dict[str, se.Evaluation], path: Path) -> Path:
    with plots.style(width=3.5, height=2.25):
        return plots.save(plots.by_cutoff(models, "ndcg"), path)


def test_files_have_the_size_and_the_fonts(
    models: dict[str, se.Evaluation], tmp_path: Path
) -> None:
    file = write(models, tmp_path / "new" / "ndcg.pdf").read_bytes()
    assert b"/MediaBox [ 0 0 252 162 ]" in file
    assert b"/FontFile2" in file  # TrueType, embedded
    assert b"/Type3" not in file
    text = write(models, tmp_path / "ndcg.svg").read_text(encoding="utf-8")
    assert 'width="252pt" height="162pt"' in text
    assert "<text" not in text
    with Image.open(write(models, tmp_path / "ndcg.PNG")) as picture:
        assert picture.size == (1050, 675)  # 300 dots per inch


def test_same_bytes_whatever_the_settings(models: dict[str, se.Evaluation], tmp_path: Path) -> None:
    for kind in ("pdf", "svg", "png"):
        file = write(models, tmp_path / f"a.{kind}")
        with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.dpi": 50}):
            other = write(models, tmp_path / f"b.{kind}")
        assert file.read_bytes() == other.read_bytes()


def test_settings_are_back_after_a_chart_and_an_error(models: dict[str, se.Evaluation]) -> None:
    before = dict(mpl.rcParams)
    with pytest.raises(ZeroDivisionError), plots.style():
        raise ZeroDivisionError
    drawn = plots.means(models, "ndcg@10")
    assert drawn.figure in [plt.figure(n) for n in plt.get_fignums()]
    assert dict(mpl.rcParams) == before


def test_refuses_other_charts_and_files(models: dict[str, se.Evaluation], tmp_path: Path) -> None:
    for size in (0, float("nan"), "3", True):
        with raises(InvalidDataError):
            plots.style(size).__enter__()  # type: ignore[arg-type]
    ax = plots.by_cutoff(models, "ndcg")
    for chart, name in ((ax, "ndcg.eps"), (ax, "ndcg"), (models, "a.pdf")):
        with raises(InvalidDataError):
            plots.save(chart, tmp_path / name)  # type: ignore[arg-type]
    (tmp_path / "file").touch()
    with pytest.raises(OutputError):
        plots.save(ax, tmp_path / "file" / "a.pdf")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
