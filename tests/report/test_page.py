"""Test the report page: its statements, its structure, and odd input."""

import re
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import reporting
from cross_cases import cross
from evaluations import random_of
from exact import exact_model
from raising import raises
from scipy import stats
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.metrics import REGISTRY
from sparse_eval.metrics.random_baseline import DRAWS
from sparse_eval.report.page import _random_cell, bands_of_users, in_words
from sparse_eval.report.style import draw_interval, format_number, format_numbers, format_shares

VOID = {"meta", "br", "wbr", "link", "img", "input", "hr"}
BLOCKS = {"td", "th", "tr", "li", "p", "div", "dt", "dd", "h2", "h3", "h4", "text", "figcaption"}


class Reader(HTMLParser):
    """Parse a page: its text, its elements, and whether every element is closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.elements, self.text = [], [], ""
        self.feed(page)
        self.close()
        assert self.open == []
        self.tags = {tag for tag, _ in self.elements}
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in BLOCKS:
            self.text += " "
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


def rounded(row):
    """Return a mean as the page shows it."""
    return format_numbers(row["mean"], row["ci_low"], row["ci_high"])[0]


#: Tests that look at charts.
DRAWN = {"test_page_has_every_section_and_number", "test_page_is_self_contained_and_reproducible"}


@pytest.fixture(autouse=True)
def charts(request, monkeypatch):
    if request.node.name not in DRAWN:
        reporting.draw_nothing(monkeypatch)


@pytest.fixture
def read(tmp_path):
    """Write a page, and read it."""

    def write(*arguments, **options):
        path = se.write_report(arguments[0], tmp_path / "r.html", *arguments[1:], **options)
        return Reader(path.read_text(encoding="utf-8"))

    return write


@pytest.fixture(scope="module")
def models():
    return reporting.three()


def at_ranks(ranks, metrics, counted=True, **options):
    """Evaluate lists of five items with the relevant one at a rank, 0 for none."""
    ranks = np.asarray(ranks)
    ids = np.tile(np.arange(5), (len(ranks), 1))
    ids[ranks > 0, ranks[ranks > 0] - 1] = 5
    held_out = np.tile(np.arange(6) == 5, (len(ranks), 1)) & np.reshape(counted, (-1, 1))
    return se.evaluate(se.Rankings.from_topk(ids), csr_matrix(held_out * 1.0), metrics, **options)


def test_headline_names_the_best_model(models, read):
    others_first = {name: models[name] for name in ("poor", "fair", "good")}
    text = read(others_first, ["ndcg@10", "recall@10"]).text
    assert "metric good poor fair random lists" in text
    assert "verdict" not in text
    row = se.compare(models, "ndcg@10").table.iloc[0]
    assert "good has the best nDCG@10 of 3 models" in text
    assert "and beats every other model." in text
    means, ends = (row["mean_a"], row["mean_b"]), (row["ci_low"], row["ci_high"])
    assert 0.02 < ends[1] - ends[0] < 0.2  # so that two decimals are certain
    share = 100 * row["difference"] / row["mean_b"]
    assert (
        f"good beats fair: nDCG@10 +{share:.0f} % ({means[0]:.2f} against {means[1]:.2f}; 95 % "
        f"interval of the difference +{ends[0]:.2f} to +{ends[1]:.2f}; 231 users)."
    ) in text
    shares = format_shares(row["wins"], row["ties"], row["losses"])
    assert sum(int(share.removesuffix(" %")) for share in shares) == 100
    assert "better for {} of the users, equal for {}, worse for {}.".format(*shares) in text


@pytest.mark.long
@pytest.mark.filterwarnings("error:too few users")  # the page has a note, so nothing warns
def test_statements_about_models(models, read):
    good, fair, poor = models.values()
    two, many = {"poor": poor, "fair": fair}, {f"poor{number}": poor for number in range(7)}
    detectable = format_number(se.compare(two).table["detectable"][0])
    row = good.summary().loc["ndcg@5"]
    equal, lift = format_number(row["mean"]), f"{row['lift']:,.3g}"
    path = "nightly/2026-11-24/als-factors-{}-regularization-0.05-iterations-15.npz"
    each = csr_matrix(np.eye(2))
    undefined = se.evaluate([[0], [1]], each, "auc", train=each[::-1])
    few = at_ranks([2] * 9 + [0] * 41, "hit_rate@2")
    ranks = reporting.evaluate(1, 0.5, whole=False)
    long = {path.format(8): poor, path.format(64): good}
    best = "good has the best nDCG@5 of 8 models and beats every other model."
    statements = [
        (long, "factors-64 beats factors-8: nDCG@5", f"models factors-8 {path.format(8)}"),
        (many | {"good": good}, best),
        (many, "of 7 models and beats no other model: no difference is significant."),
        (two, "No significant difference between poor and fair", f"of {detectable} would"),
        ({"a": good, "b": good}, f"a and b are equal: nDCG@5 {equal}, the same for each of"),
        ({"good": good}, f"good reaches nDCG@5 {rounded(row)} (95 % interval", f"{lift} times as"),
        ({"a": undefined, "b": undefined}, "AUC is not defined for any user."),
        ({"als": few}, "als: too few users for the intervals of hit_rate@2"),
        ({"ranks": ranks}, "Only the ranks of relevant items were computed"),
    ]
    for evs, *sentences in statements:
        text = read(evs, title="<Title>").text
        assert text.startswith("<Title>")
        for sentence in sentences:
            assert sentence in text
    assert "Concentration" not in text  # the lists of the last page are not known
    n_shown = sum(not example["whole"] for example in ranks._record["examples"])
    assert text.count(sentence) == n_shown > 0


def test_page_has_every_section_and_number(models, read):
    history = pd.DataFrame({"ndcg@5": [0.1, 0.2]}, index=pd.Index([1, 2], name="iteration"))
    reader = read(models, curves={"run": history}, left_out={"x": "is <broken>"})
    charts = [
        "nDCG@5 of each model", "nDCG@5 of the best minus the other models", "nDCG by cut-off",
        "recall by cut-off", "nDCG@5 of individual users", "Precision and recall",
        "nDCG@5 by user activity", "recall@5 by item popularity",
        "Concentration of the recommendations", "Lift over random lists", "Learning curve: run",
    ]  # fmt: skip
    n_drawn = sum(attributes.get("class") == "chart" for _, attributes in reader.elements)
    assert n_drawn == len(charts)
    good = models["good"]
    listed = [row for row in good._record["examples"][0]["listed"] if row["gain"]]
    for expected in (
        *charts,
        "All metrics", "Charts", "Comparison", "Who wins, who loses", "Individual users",
        "How metrics were computed", "How to reproduce this", "Left out", "x: is <broken>",
        *(rounded(ev.summary().loc[name]) for ev in models.values() for name in good.names),
        # A user in depth, down to the cut-off of the main metric.
        *(
            f"{row['item']} relevant {format_number(row['contribution'])}"
            for row in listed
            if row["rank"] <= 5
        ),
        good._record["inputs"]["relevance"]["sha256"], f"numpy {np.__version__}",
    ):  # fmt: skip
        assert expected in reader.text
    # What the metrics say, once each.
    for name in ("recall", "coverage"):
        assert reader.text.count(REGISTRY[name].plain) == 1


@pytest.mark.long
def test_names_metrics_by_which_another_model_is_better(read):
    # a hits fewer users, at rank 1; b hits all users, at rank 5.
    ranks = {"a": [1] * 200 + [0] * 200, "b": [5] * 400}
    metrics = ["mrr@5", "hit_rate@5", "hit_rate@1"]
    text = read({name: at_ranks(of, metrics) for name, of in ranks.items()}).text
    assert "a beats b: MRR@5" in text
    assert "By hit rate@5, b is better than a." in text
    # Only values that no other is significantly better than have a star.
    assert text.count("best:") == 3


@pytest.mark.long
def test_models_are_ranked_on_the_users_compared(read):
    # a is evaluated on easy users only; b is better on these, and poor on all others.
    easy = np.arange(300) < 100
    models = {"a": at_ranks(2 * easy, "mrr@5", easy), "b": at_ranks(1 * easy, "mrr@5")}
    assert models["a"]["mrr@5"] > models["b"]["mrr@5"]
    text = read(models).text
    assert "compared on the 100 users that all have; left out: 200 of the 300 of b" in text
    assert "b beats a: MRR@5 1.0 against 0.5" in text
    assert "b against a, by relevant items of the user" in text
    assert text.count("best:") == 1


@pytest.mark.long
def test_names_subgroups_and_segments_for_which_the_best_model_is_worse(read):
    # a is better for all users but those with the most training items.
    seen, items = np.arange(400) // 100 + 1, np.arange(10)
    many, noise = seen == 4, np.random.default_rng(0).random(400) < 0.1
    train = csr_matrix((items > 5) & (items < 6 + seen[:, None]), dtype=float)
    evs = {
        name: at_ranks(np.where(good != noise, 1, 3), "mrr@3", train=train)
        for name, good in (("a", ~many), ("b", many))
    }
    text = read(evs, by=pd.Series(np.where(many, "paid", "free"), name="plan")).text
    assert "a beats b" in text
    assert "But a is worse than b for users with 4 training items." in text
    assert "But a is worse than b for users of plan paid." in text
    assert "In no band" not in text


@pytest.mark.long
def test_subgroups_have_wins_and_losses(models, read):
    two = {name: models[name] for name in ("good", "fair")}
    text = read(two).text
    table = se.compare(two, "ndcg@5", by=bands_of_users(models["good"])).table
    for row in table.to_dict("records"):
        interval = "no interval"
        if row["n_users"] >= 10:
            interval = " to ".join(format_numbers(row["ci_low"], row["ci_high"]))
        shares = " ".join(format_shares(row["wins"], row["ties"], row["losses"]))
        difference = format_number(row["difference"])
        assert f"{row['segment']} {row['n_users']} {difference}{interval} {shares}" in text
    worst = table.loc[table["n_users"] >= 10, "ci_high"].min()
    assert ("In no band is good significantly worse." in text) == (worst >= 0)


@pytest.mark.long
def test_page_is_self_contained_and_reproducible(tmp_path):
    path = se.write_report(reporting.three(odd=True), tmp_path / "r.html")
    page = path.read_text(encoding="utf-8")
    reader = Reader(page)
    assert not reader.tags & {"script", "img", "iframe", "object", "embed", "link", "base", "form"}
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in reader.elements:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("href", "xlink:href", "src"):
            target = attributes.get(name) or "#main"
            assert target[0] == "#"
            assert target[1:] in ids
        for name in ("aria-labelledby", "aria-describedby"):
            assert (attributes.get(name) or ids[0]) in ids
    assert not re.findall(r"url\((?!#)|@import", page)
    assert len(page) < 2_000_000
    # Odd labels stay text.
    assert "<script>alert(1)</script> beats" in reader.text
    assert "two lines" in reader.text
    assert "49" not in re.findall(r"User (\S+)", reader.text)  # no template was run
    # The same bytes, whatever matplotlib settings the process has.
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red"}):
        again = se.write_report(reporting.three(odd=True), tmp_path / "again.html")
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.long
def test_a_loaded_evaluation_makes_the_same_page(models, tmp_path):
    loaded = se.Evaluation.load(models["good"].save(tmp_path / "good"))
    pages = [
        se.write_report({"a": ev}, tmp_path / "r.html").read_bytes()
        for ev in (models["good"], loaded)
    ]
    assert pages[0] == pages[1]


@pytest.mark.long
def test_refuses_unusable_evaluations_and_segments(models, read, tmp_path):
    totals = at_ranks([1], "ndcg@5", keep="totals")
    for evaluations, options in (
        ({}, {}),
        ({1: models["good"], "1": models["fair"]}, {}),
        (models, {"item_names": {"other": "x"}}),
        (models, {"by": {"x": "y"}}),
        ({"als": totals}, {"by": {0: "a"}}),
        (cross(), {"by": {0: "a"}}),
    ):
        with raises(InvalidDataError):
            read(evaluations, **options)
    with raises(InvalidDataError):
        se.compare(cross(), by={0: "a"})
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_display_in_notebooks(models):
    ev = models["good"]
    assert rounded(ev.summary().loc["ndcg@5"]) in Reader(ev._repr_html_()).text
    reader = Reader(se.compare(reporting.three(odd=True))._repr_html_())
    assert "<script>alert(1)</script>" in reader.text
    assert "script" not in reader.tags
    assert "Holm's correction over 21 differences" in reader.text
    assert "not significant" in repr(se.compare(models, "ndcg@5"))
    shown = se.compare({f"model {number}": ev for number in range(5)})
    assert len(shown.shown()) == 4 * 7
    for text in (shown._repr_html_(), repr(shown)):
        assert "all 70 rows: .table" in text


@pytest.mark.long
def test_names_of_items_are_beside_them(read):
    items = [*reporting.ODD, *(f"i{n}" for n in range(49))]
    titles = ["<b>bold</b>", "{{ 7 * 7 }}", *(f"Title {n}" for n in range(57))]
    years = [*range(1950, 2008), None]
    names = pd.DataFrame({"item": items, "title": titles, "year": years})
    models = reporting.three(odd=True)
    reader = read(models, "ndcg@10", item_names=names)
    assert not reader.tags & {"script"}
    assert "<b>bold</b>" in reader.text
    title = dict(zip(items, titles, strict=True))
    examples = [example for ev in models.values() for example in ev._record["examples"]]
    missed = {row["item"] for example in examples for row in example["missed"]}
    for item in missed.union(row["item"] for example in examples for row in example["listed"]):
        assert title.get(item, "") in reader.text
    some = min(missed & {f"i{n}" for n in range(48)})
    assert f"{some} ({title[some]}, {years[items.index(some)]}" in reader.text


@pytest.mark.filterwarnings("ignore:metrics among sampled candidates")
def test_metrics_among_candidates_are_called_so(read):
    clicks = se.datasets.synthetic(n_users=60, n_items=200, n_interactions=900, seed=0)
    holdout = se.split.leave_k_out(clicks, seed=0)
    candidates = se.sample_negatives(holdout, n=9)
    model = se.baselines.random(holdout, seed=1)
    ev = se.evaluate_model(model, holdout, "ndcg@5", candidates=candidates, baselines=True)
    text = read({"random": ev}).text
    assert "The baseline “popularity” reaches nDCG@5 (1+9)" in text
    assert "random is no better" in text
    assert "can rank models differently" in text


@pytest.mark.long
def test_many_models_are_rows_and_few_are_drawn(models, read):
    text = read({f"{name} {n}": ev for n in range(3) for name, ev in models.items()}).text
    for expected in (
        "model nDCG@5",
        "model recall(average=micro)@10",
        "show the 6 models with the best nDCG@5",
        "Lists of the other 6 models",
        "By nDCG@5, the other 28 pairs",
    ):
        assert expected in text
    assert text.count("best:") >= 3 * 7
    # What all have in common is said once.
    assert text.count(models["good"]._record["inputs"]["relevance"]["sha256"]) == 1
    assert text.count("231 users are included in the means") == 1


@pytest.mark.long
def test_says_where_lower_is_better_and_which_model_is_a_baseline(read):
    holdout = se.split.random(se.datasets.synthetic(n_users=300, n_items=80, seed=1), seed=1)
    models = {
        "pop": se.baselines.popularity(holdout),
        "ease": se.baselines.ease(holdout, regularization=9),
    }
    metrics = ["popularity@10", "gini@10"]
    evs = {
        name: se.evaluate_model(model, holdout, metrics, baselines=True)
        for name, model in models.items()
    }
    text = read(evs).text
    for expected in (
        "metric ease pop random lists",
        "pop has the values of the baseline “popularity”",
        "ease beats",
        "the lower a curve, the better",
        "gini@10lower is better",
        "Lower is better.",
        "difference of popularity@10lower is better",
    ):
        assert expected in text
    # Random lists have the best gini, so that "0.3 times as good" would mislead.
    only = read({"ease": evs["ease"]}, "gini@10").text
    assert "metric ease popularitybaseline random lists" in only
    popular = rounded(evs["pop"].summary().loc["gini@10"])
    assert f"The baseline “popularity” reaches gini@10 {popular}" in only
    assert "times as good" not in only


@pytest.mark.long
def test_segments_and_margins_have_tests_charts_and_notes(models, read):
    by = pd.DataFrame(
        {"plan": ["free", "paid"] * 120, "<b>city</b>": ["Rome"] * 100 + [None] * 140}
    )
    names = ["ndcg@10", "recall@10", "mrr@10"]
    options = {"margin": {"ndcg@10": "1%", "recall@10": 0.5}, "test": "wilcoxon"}
    reader = read(models, names, by=by, **options)
    without = int(models["good"]._values.counted[100:].sum())
    rows = se.compare(models, "ndcg@10", by=by).table
    row = rows[(rows["segment"] == "paid") & (rows["b"] == "fair")].iloc[0]
    for expected in (
        "nDCG@10 by plan",
        "good against fair, by plan:",
        "good against poor, by <b>city</b>:",
        f"<b>city</b>: {without} of 231 users have none and are in no segment",
        "corrected for these 6 differences",
        f"paid {row['n_users']} {format_number(row['difference'])}",
        "With a margin of",
        "grey band",
        "equivalent",
        "best by nDCG@5",  # the first metric of the evaluation, not of the page
    ):
        assert expected in reader.text
    assert reader.text.count("verdicts are by t-tests") == 1
    text = read({"good": models["good"]}, "coverage@10", by=by).text
    assert "coverage@10 is about all users together, so it is not shown by segment" in text
    assert "verdict" not in text


def test_intervals_are_drawn_on_one_scale(models, tmp_path):
    page = se.write_report(models, tmp_path / "r.html", "ndcg@5").read_text(encoding="utf-8")
    strips = re.findall('<svg class="strip".*?</svg>', page)
    assert len(strips) == 4  # three models and random lists
    mean, low, high = models["good"].summary().loc["ndcg@5", ["mean", "ci_low", "ci_high"]]
    assert "95 % interval {1} to {2}".format(*format_numbers(mean, low, high)) in strips[0]
    ((start, end),) = re.findall(r"M([0-9.]+) 6H([0-9.]+)\" stroke", strips[0])
    assert float(end) == 107  # the best interval ends the scale
    lowest = min(random_of(ev, "ndcg@5").mean for ev in models.values())
    share = (low - lowest) / (high - lowest)
    assert float(start) == pytest.approx(5 + 102 * share, abs=0.06)
    assert "no interval" in strips[3]


def test_random_lists_have_the_interval_of_their_draws():
    low, high = stats.t.interval(0.95, DRAWS - 1, 0.2, 0.01)
    cell = _random_cell({"random": 0.2, "random_se": 0.01}, (0.0, 1.0))
    assert cell == {"mean": 0.2, "ci_low": pytest.approx(low), "ci_high": pytest.approx(high)}
    for exact in ({"random": 0.2, "random_se": 0.0}, {"random": None, "random_se": None}):
        assert _random_cell(exact, (0.0, 1.0))["ci_low"] is None


def test_control_characters_are_escaped(models, tmp_path):
    named = {"a\u202eb": models["good"], "c\x07": models["poor"]}
    page = se.write_report(named, tmp_path / "r.html", "ndcg@5", title="\u202etitle")
    text = page.read_text(encoding="utf-8")
    assert not re.search("[\x00-\x08\u202a-\u202e]", text)
    assert "a\\u202eb" in text
    assert "c\\u0007" in text


@pytest.mark.long
def test_says_how_the_results_were_made(read, tmp_path):
    holdout = se.split.random(se.datasets.synthetic(n_users=300, n_items=80, seed=1), seed=1)
    evs = {}
    for factors in (2, 16):
        model = exact_model(holdout.train, factors)
        ev = se.evaluate_model(model, holdout, "ndcg@5", baselines=True)
        about = {"data": "clicks.csv", "split": "random", "model": {"factors": factors}, "seed": 1}
        evs[f"als{factors}"] = se.Evaluation.load(ev.save(tmp_path / f"{factors}", about=about))
    text = read(evs).text
    best = max(evs, key=lambda name: evs[name]["ndcg@5"])
    for expected in (
        f"Data clicks.csv, 300 users × 80 items, {holdout.validation.nnz:,} relevant pairs",
        "Split random Evaluated with sparse_eval ",
        f"Parameters of {best} factors {best[3:]}, seed 1",
    ):
        assert expected in text
    assert "The baseline “popularity” beats" in text


def test_shares_add_to_100():
    assert format_shares(1, 1, 1) == ["34 %", "33 %", "33 %"]
    assert format_shares(2, 0, 0) == ["100 %", "0 %", "0 %"]
    assert format_shares(999, 0, 1) == ["100 %", "0 %", "< 1 %"]
    assert format_shares(0, 0, 0) == ["–", "–", "–"]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (
            (0.25, 0.2, 0.03, 0.07),
            "+25 % (0.25 against 0.20; 95 % interval of the difference +0.03 to +0.07; 9 users)",
        ),
        ((3e-300, 2e-300, 1e-300, 2e-300), "+50 % (3.00e−300 against 2.00e−300; 95 % interval"),
        ((1e308, -1e308, -1e308, 1.7e308), "(1.00e+308 against −1.00e+308; 95 % interval"),
        ((0.3, 1e-300, 0.2, 0.4), "(0.30 against 0.00; 95 % interval of the difference +0.20"),
        ((0.3, 0.2, 0.1, 0.1 + 2e-17), "+50 % (0.300000000 against 0.200000000; 95 % interval"),
    ],
)
def test_differences_in_words_stay_short(numbers, expected):
    a, b, low, high = numbers
    row = {"mean_a": a, "mean_b": b, "difference": a - b, "n_users": 9, "mean": a}
    assert in_words(row | {"ci_low": low, "ci_high": high}).startswith(expected)
    assert "nan" not in draw_interval(row | {"ci_low": low, "ci_high": high}, (min(b, low), high))
