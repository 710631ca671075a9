"""Test that charts draw the numbers of the evaluations."""

import re

import matplotlib as mpl
import matplotlib.style
import numpy as np
import pytest
import reporting
from matplotlib.figure import Figure
from raising import raises

import sparse_eval as se
from sparse_eval import plots
from sparse_eval.errors import InvalidDataError
from sparse_eval.report.wording import short_names


@pytest.fixture(scope="module")
def models():
    return reporting.three()


@pytest.fixture
def ax():
    return Figure().subplots()


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
    (label,) = ax.get_legend().get_texts()
    n_losers = int((ordered < -0.1).sum())
    assert path.vertices[:, 0].max() == pytest.approx(100 * (n_losers - 0.5) / len(ordered))
    (row,) = fair.losers(poor, "ndcg@10", 0.1).to_dict("records")
    low, share, high = (f"{100 * row[name]:.1f}" for name in ("ci_low", "share", "ci_high"))
    assert row["losers"] == n_losers
    assert label.get_text() == f"{share} % of users lose more than 0.1 ({low} to {high} %)"
    assert ax.get_ylabel() == "nDCG@10: fair\n− poor"


def test_short_names_are_told_apart():
    assert short_names(["als-factors8-alpha1-reg0.1-seed0-last"]) == [
        "als-factor…ha1-reg0.1-seed0-last"
    ]
    assert short_names(["two\nlines\x00 ", " "]) == ["two lines\\u0000", "(no name)"]
    names = [f"runs/als_factors={n}_alpha=40_reg=0.01_iterations=30" for n in (128, 256)]
    assert short_names(names) == ["factors=128", "factors=256"]
    middle = [f"{'a' * 40}{n}{'b' * 40}" for n in range(3)]
    assert [name[0] for name in short_names(middle)] == ["1", "2", "3"]
    assert len(set(short_names(["a b", "a  b"]))) == 2
    assert max(map(len, short_names([*middle, *names]))) <= 32


def test_a_former_name_shows_what_to_use():
    for name, instead in plots._INSTEAD.items():
        with pytest.raises(AttributeError, match=re.escape(instead)):
            getattr(plots, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'$"):
        _ = plots.nothing


def test_refuses_what_cannot_be_drawn(models, ax):
    for draw, *arguments in (
        (plots.distribution, [models["good"]], "ndcg@10"),
        (plots.distribution, models, "coverage@10"),
        (plots.by_cutoff, models, "map"),
        (plots.losers, models, "ndcg@10"),
    ):
        with raises(se.SparseEvalError):
            draw(*arguments, ax=ax)
    with raises(InvalidDataError):
        plots.distribution(models, "ndcg@10", ax="axes")


def test_names_that_matplotlib_would_hide_or_typeset(models):
    # matplotlib hides labels that begin with "_" from legends that it collects itself.
    named = {"_a": models["good"], "b": models["poor"]}
    ax = plots.distribution(named, "ndcg@10", ax=Figure().subplots())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["_a", "b"]


def test_draws_into_a_new_figure(models):
    import matplotlib.pyplot as plt

    before = dict(mpl.rcParams)
    drawn = plots.distribution(models, "ndcg@10")
    assert drawn.figure in [plt.figure(n) for n in plt.get_fignums()]
    assert dict(mpl.rcParams) == before
    plt.close("all")


def test_the_style_of_the_page_is_a_style_of_matplotlib(models):
    with mpl.style.context("sparse_eval.report.chart"):
        ax = plots.distribution(models, "ndcg@10", ax=Figure().subplots())
        lines = [line.get_linestyle() for line in ax.lines]
    assert len({*lines}) == 3
    assert ax.lines[0].get_color() == "#3a7ebf"
