"""Test that charts draw the numbers of the evaluations."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import reporting
from matplotlib.figure import Figure
from raising import raises
from scipy import stats
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval import plots
from sparse_eval.errors import InvalidDataError
from sparse_eval.report.style import pieces, short_names, shorten


@pytest.fixture(scope="module")
def models():
    return reporting.three()


@pytest.fixture
def ax():
    return Figure().subplots()


def points(container):
    """Return the markers of error bars, and the ends of the bars."""
    line, _, bars = container
    segments = [segment for bar in bars for segment in bar.get_segments() if len(segment)]
    ends = np.concatenate(segments)
    return np.concatenate([np.column_stack(line.get_data()), ends]).astype(np.float64)


def test_means(models, ax):
    assert plots.means(models, "ndcg@10", ax=ax) is ax
    for place, (container, ev) in enumerate(zip(ax.containers, models.values(), strict=True)):
        row = ev.summary().loc["ndcg@10"]
        expected = [[row["mean"], place], [row["ci_low"], place], [row["ci_high"], place]]
        assert points(container) == pytest.approx(np.array(expected))
    assert [text.get_text() for text in ax.texts] == list(models)


def test_differences(models, ax):
    compared = se.compare(models, "ndcg@10")
    plots.differences(compared, "ndcg@10", ax=ax)
    for container, row in zip(ax.containers, compared.table.to_dict("records"), strict=True):
        drawn = points(container)[:, 0]
        assert drawn == pytest.approx([row["difference"], row["ci_low"], row["ci_high"]])
        filled = container[0].get_markerfacecolor() != "none"
        assert filled == (row["better"] != "")
    assert [text.get_text() for text in ax.texts] == ["good − fair", "good − poor", "fair − poor"]
    # A margin is a band behind each difference.
    plots.differences(se.compare(models, "ndcg@10", margin=0.03), "ndcg@10", ax=ax)
    bands = [band for band in ax.collections if band.get_alpha() == 0.12]
    ends = [band.get_datalim(ax.transData).intervalx.tolist() for band in bands]
    assert ends == [[-0.03, 0.03]] * 3


def test_by_cutoff(models, ax):
    plots.by_cutoff(models, "ndcg", ax=ax)
    for line, band, ev in zip(ax.lines, ax.collections, models.values(), strict=True):
        assert line.get_xdata() == pytest.approx([5, 10])
        assert line.get_ydata() == pytest.approx([ev["ndcg@5"], ev["ndcg@10"]])
        rows = ev.summary().loc[["ndcg@5", "ndcg@10"]]
        reached = {tuple(corner) for corner in band.get_paths()[0].vertices.round(9)}
        for k, low, high in zip((5, 10), rows["ci_low"], rows["ci_high"], strict=True):
            assert {(k, round(low, 9)), (k, round(high, 9))} <= reached


def test_distribution(models, ax):
    plots.distribution({"good": models["good"]}, "ndcg@10", ax=ax)
    values = models["good"].values("ndcg@10")
    values = values[~np.isnan(values)]
    (line,) = ax.lines
    for x, share in zip(*line.get_data(), strict=True):
        assert share == pytest.approx((values >= x).mean())


def test_losers(models, ax):
    fair, poor = models["fair"], models["poor"]
    plots.losers({"fair": fair, "poor": poor}, "ndcg@10", 0.1, ax=ax)
    differences = fair.values("ndcg@10") - poor.values("ndcg@10")
    ordered = np.sort(differences[fair._values.counted])
    shares, drawn = ax.lines[0].get_data()
    places = np.rint(np.asarray(shares, float) * len(ordered) / 100 - 0.5).astype(int)
    assert drawn == pytest.approx(ordered[places])
    (shaded,) = ax.collections
    (path,) = shaded.get_paths()
    n_losers = int((ordered < -0.1).sum())
    assert path.vertices[:, 0].max() == pytest.approx(100 * (n_losers - 0.5) / len(ordered))
    (row,) = fair.losers(poor, "ndcg@10", 0.1).to_dict("records")
    low, share, high = (f"{100 * row[name]:.1f}" for name in ("ci_low", "share", "ci_high"))
    assert row["losers"] == n_losers
    assert shaded.get_label() == f"{share} % of users lose more than 0.1 ({low} to {high} %)"
    assert ax.get_ylabel() == "nDCG@10: fair − poor"


def test_precision_recall(models, ax):
    plots.precision_recall(models, ax=ax)
    for line, ev in zip(ax.lines, models.values(), strict=True):
        curve = ev.precision_recall()
        assert line.get_xdata() == pytest.approx(curve.recall)
        assert line.get_ydata() == pytest.approx(curve.precision)


@pytest.mark.parametrize(
    ("groups", "metric"), [("activity", "ndcg@10"), ("popularity", "recall@5")]
)
def test_by_group(models, ax, groups, metric):
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


def test_by_segments_of_your_own(models, ax):
    plans = pd.Series(["free", "paid", None] * 80, name="plan")
    plots.by_group(models, plans, "ndcg@10", ax=ax)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["free", "paid"]
    without = sum(models["good"]._values.counted[2::3])
    assert ax.get_xlabel() == f"plan ({without} users in no segment)"
    for container, ev in zip(ax.containers, models.values(), strict=True):
        expected = ev.by(plans.fillna("none")).xs("ndcg@10", level="metric")
        assert points(container)[:2, 1] == pytest.approx(expected["mean"].loc[["free", "paid"]])


def test_differences_by_segment(models, ax):
    plans = pd.Series(["free", "paid"] * 120, name="plan")
    compared = se.compare({name: models[name] for name in ("good", "fair")}, "ndcg@10", by=plans)
    plots.differences(compared, "ndcg@10", ax=ax)
    assert [text.get_text() for text in ax.texts] == ["plan free", "plan paid"]
    assert ax.get_xlabel() == "nDCG@10: good − fair"
    several = se.compare(models, "ndcg@10", by=plans)
    other = plots.differences(several, "ndcg@10", ax=Figure().subplots())
    assert other.texts[0].get_text() == "plan free: good − fair"


def test_short_names_are_told_apart():
    assert shorten("als-factors8-alpha1-reg0.1-seed0", 20) == "als-fa…-reg0.1-seed0"
    assert shorten("two\nlines\x00 ") == "two lines\\u0000"
    assert shorten(" ") == "(no name)"
    names = [f"als_factors={n}_alpha=40_reg=0.01_iterations=30_seed=3" for n in (128, 256, 512)]
    short = short_names(names, 24)
    assert len(set(short)) == 3
    assert max(map(len, short)) <= 24
    middle = [f"{'a' * 40}{n}{'b' * 40}" for n in range(3)]
    assert [name[0] for name in short_names(middle, 24)] == ["1", "2", "3"]
    assert short_names(["als", "als"]) == ["als", "als"]


@pytest.mark.parametrize("name", ["als_factors=256_seed=3", "a" * 50, "_x", "a\n b", "", "שלום"])
def test_pieces_are_the_whole_name(name):
    assert "".join(pieces(name)) == name
    assert max(map(len, pieces(name)), default=0) <= 20


def test_concentration(models, ax):
    plots.concentration({"good": models["good"]}, ax=ax)
    lists = models["good"].rankings.to_positions()[models["good"]._values.counted]
    counts = np.sort((lists > 0).sum(axis=0).A1)[::-1]
    items, places = ax.lines[0].get_data()
    for x, y in zip(items, places, strict=True):
        assert y == pytest.approx(counts[: round(x * 60)].sum() / counts.sum())


def test_lift(models, ax):
    plots.lift(models, ax=ax)
    for line, ev in zip(ax.lines, models.values(), strict=False):
        assert line.get_xdata() == pytest.approx(ev.summary()["lift"])


def test_learning_curve(ax):
    history = pd.DataFrame({"ndcg@5": [0.1, 0.2]}, index=pd.Index([1, 2], name="iteration"))
    plots.learning_curve(history, "ndcg@5", ax=ax)
    assert np.column_stack(ax.lines[0].get_data()).tolist() == [[1, 0.1], [2, 0.2]]
    assert ax.get_xlabel() == "iteration"
    sweep = pd.DataFrame({"file": ["a", "b"], "ndcg@5": [0.1, 0.3], "mrr@5": [0.2, 0.2]})
    plots.learning_curve(sweep, ["ndcg@5", "mrr@5"], ax=ax)
    assert ax.lines[-1].get_ydata().tolist() == [0.2, 0.2]
    assert "checkpoint" in ax.get_xlabel()


def test_refuses_what_cannot_be_drawn(models, ax):
    two = pd.DataFrame({"plan": ["free", "paid"] * 120, "country": "DE"})
    nothing = {"nothing": se.evaluate([[1]], csr_matrix([[1, 0]]), "mrr@1")}
    ranks = {"ranks": reporting.evaluate(1, 0.3, whole=False)}
    for draw, *arguments in (
        (plots.means, [models["good"]], "ndcg@10"),
        (plots.differences, se.compare(models, "ndcg@10"), "recall@5"),
        (plots.by_cutoff, models, "map"),
        (plots.losers, models, "ndcg@10"),
        (plots.by_group, models, two, "ndcg@10"),
        (plots.by_group, nothing, "activity", "mrr@1"),  # without training data
        (plots.by_group, models, "popularity", "ndcg@10"),
        (plots.concentration, ranks),
        (plots.lift, nothing),
        (plots.learning_curve, pd.DataFrame({"mrr@5": [0.2]}), "map@5"),
    ):
        with raises(InvalidDataError):
            draw(*arguments, ax=ax)


def test_draws_into_a_new_figure(models):
    import matplotlib.pyplot as plt

    before = dict(mpl.rcParams)
    drawn = plots.means(models, "ndcg@10")
    assert drawn.figure in [plt.figure(n) for n in plt.get_fignums()]
    assert dict(mpl.rcParams) == before
    plt.close("all")
