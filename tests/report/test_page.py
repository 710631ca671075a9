"""Test the report page: its statements, its structure, and odd input."""

import re
from base64 import b64decode
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import reporting
from cross_cases import cross
from exact import exact_model
from raising import raises
from scipy import stats
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.metrics import REGISTRY
from sparse_eval.report.page import _bands_of_users, segment_differences
from sparse_eval.report.wording import draw_interval, format_number, format_numbers, in_words

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
DRAWN = {"test_charts_are_readable_images", "test_page_is_self_contained_and_reproducible"}


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
    assert "model nDCG@10 recall@10 good best:" in text
    assert text.index(" poor ") < text.index(" fair ")
    assert "verdict" not in text
    row = se.compare({name: models[name] for name in ("good", "poor")}, "ndcg@10").table.iloc[0]
    assert "good has the best nDCG@10 of 3 models" in text
    assert "and beats every other model." in text
    means, ends = (row["mean_a"], row["mean_b"]), (row["ci_low"], row["ci_high"])
    assert 0.02 < ends[1] - ends[0] < 0.2  # so that two decimals are certain
    share = 100 * row["difference"] / row["mean_b"]
    # The sentence is about the next best.
    assert (
        f"good beats poor: nDCG@10 +{share:.0f} % ({means[0]:.2f} against {means[1]:.2f}; 95 % "
        f"interval of the difference +{ends[0]:.2f} to +{ends[1]:.2f}; 231 users)."
    ) in text
    counts = "better for {} users, equal for {}, worse for {}."
    assert counts.format(row["wins"], row["ties"], row["losses"]) in text
    assert "good against difference of nDCG@10 p, corrected better wins" in text


@pytest.mark.long
@pytest.mark.filterwarnings("error:too few users")  # the page has a note, so nothing warns
def test_statements_about_models(models, read):
    good, fair, poor = models.values()
    two, many = {"poor": poor, "fair": fair}, {f"poor{number}": poor for number in range(7)}
    detectable = format_number(se.compare(two).table["detectable"][0])
    row = good.summary().loc["ndcg@5"]
    equal = format_number(row["mean"])
    path = "nightly/2026-11-24/als-factors-{}-regularization-0.05-iterations-15.npz"
    each = csr_matrix(np.eye(2))
    undefined = se.evaluate([[0], [1]], each, "auc", train=each[::-1])
    few = at_ranks([2] * 9 + [0] * 41, "hit_rate@2")
    long = {path.format(8): poor, path.format(64): good}
    best = "good has the best nDCG@5 of 8 models and beats every other model."
    statements = [
        (long, "factors-64 beats factors-8: nDCG@5", f"models factors-8 {path.format(8)}"),
        (many | {"good": good}, best),
        (many, "of 7 models and beats no other model."),
        (two, "No significant difference between poor and fair", f"of {detectable} would"),
        ({"a": good, "b": good}, f"a and b are equal: nDCG@5 {equal}, the same for each of"),
        ({"good": good}, f"good reaches nDCG@5 {rounded(row)} (95 % interval"),
        ({"a": undefined, "b": undefined}, "AUC is not defined for any user."),
        ({"als": few}, "als: too few users for the intervals of hit_rate@2"),
    ]
    for evs, *sentences in statements:
        text = read(evs, title="<Title>").text
        assert text.startswith("<Title>")
        for sentence in sentences:
            assert sentence in text


def test_page_has_every_section_and_number(models, read):
    reader = read(models, left_out={"x": "is <broken>"})
    charts = ["nDCG@5 of individual users", "Users who lose: good against"]
    images = [attributes for tag, attributes in reader.elements if tag == "img"]
    assert [image["alt"].startswith(title) for image, title in zip(images, charts, strict=True)]
    good = models["good"]
    for expected in (
        *charts,
        "All metrics", "Charts", "Differences", "Segments of users", "How this was made",
        "Left out", "x: is <broken>", "231 in the means, 9 left out, 2 without training data",
        *(rounded(ev.summary().loc[name]) for ev in models.values() for name in good),
        good._record["inputs"]["relevance"]["sha256"], f"numpy {np.__version__}",
    ):  # fmt: skip
        assert expected in reader.text
    # What the metrics say, once each.
    for name in ("recall", "coverage"):
        assert reader.text.count(REGISTRY[name].plain) == 1


def test_charts_are_readable_images(models, tmp_path):
    page = se.write_report(models, tmp_path / "r.html", "ndcg@5").read_text(encoding="utf-8")
    images = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    assert len(images) == 2
    for image in images:
        assert re.search("<text[^>]*>[^<]*good", b64decode(image).decode())


def test_a_metric_with_three_cutoffs_is_drawn_by_cutoff(read):
    cutoffs = {f"ndcg@{{1,{last}}}": "nDCG by cut-off" for last in ("2,3", "3")}
    found = [
        title in read({"a": at_ranks([1, 2, 0], metrics)}).text
        for metrics, title in cutoffs.items()
    ]
    assert found == [True, False]


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
    assert "b against a relevant items of the user users difference" in text
    assert text.count("best:") == 1


@pytest.mark.long
def test_the_best_model_may_be_worse_for_users_with_a_value_of_both(read):
    # AUC is undefined for users whose other item is seen: two groups have a value of one model.
    group = np.repeat([0, 1, 2], [40, 10, 40])
    held_out = csr_matrix(np.tile([1.0, 0.0], (90, 1)))
    evs = {}
    for name, undefined, is_first in (("a", 2, group == 0), ("b", 0, group == 1)):
        ids = np.where(is_first[:, None], [0, 1], [1, 0])
        ids[group == undefined] = [0, -1]
        train = csr_matrix(np.stack([group < 0, group == undefined], axis=1) * 1.0)
        lists = se.Rankings.from_topk(ids, shape=(90, 2))
        evs[name] = se.evaluate(lists, held_out, "auc", train=train)
    assert evs["a"]["auc"] > evs["b"]["auc"]
    text = read(evs).text
    assert "b is better than a for the 10 users for whom both have a value: AUC 1.0" in text


@pytest.mark.long
def test_names_segments_for_which_the_best_model_is_worse(read):
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
    assert "But b is better than a in these segments: plan paid." in text
    bands = "But b is better than a in these segments: training items of the user 4 items."
    assert bands in text


@pytest.mark.long
def test_bands_of_users_have_tests_wins_and_losses(models, read):
    two = {name: models[name] for name in ("good", "fair")}
    text = read(two).text
    bands = _bands_of_users(models["good"]._values)
    table, _ = segment_differences(two, "ndcg@5", bands, correction="holm")
    expected = se.compare(two, "ndcg@5", by=bands).table
    pd.testing.assert_frame_equal(table, expected)
    for row in table.to_dict("records"):
        interval = " to ".join(format_numbers(row["ci_low"], row["ci_high"]))
        difference = format_number(row["difference"])
        p = f"{row['p_corrected']:.3f}" if row["p_corrected"] >= 0.001 else "< 0.001"
        counts = "{wins} {ties} {losses}".format(**row)
        better = row["better"] or "not significant"
        assert (
            f"{row['segment']} {row['n_users']} {difference}{interval} {p} {better} {counts}"
            in text
        )


@pytest.mark.long
def test_one_model_has_its_means_by_segment(models, read):
    plans = pd.Series(["free", "paid", None] * 80, name="plan")
    ev = models["good"]
    text = read({"good": ev}, "ndcg@5", by=plans).text
    table = ev.by(plans.fillna("none")).xs("ndcg@5", level="metric")
    for plan in ("free", "paid"):
        mean, std, n = table.loc[plan, ["mean", "std", "n_users"]]
        ends = stats.t.interval(0.95, n - 1, mean, std / np.sqrt(n))
        interval = " to ".join(format_numbers(*ends))
        assert f"{plan} {int(n)} {format_number(mean)}{interval}" in text
    assert f"plan: {int(table.loc['none', 'n_users'])} of 231 users have none" in text


@pytest.mark.long
def test_page_is_self_contained_and_reproducible(tmp_path):
    path = se.write_report(reporting.three(odd=True), tmp_path / "r.html")
    page = path.read_text(encoding="utf-8")
    reader = Reader(page)
    assert not reader.tags & {"script", "iframe", "object", "embed", "link", "base", "form"}
    ids = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in reader.elements:
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("src", "data:image/svg+xml").startswith("data:image/svg+xml")
        target = attributes.get("href") or "#main"
        assert target[0] == "#"
        assert target[1:] in ids
        for name in ("aria-labelledby", "aria-describedby"):
            assert (attributes.get(name) or ids[0]) in ids
    assert not re.findall(r"url\(|@import", page)
    assert len(page) < 200_000
    # Odd labels stay text.
    assert "<script>alert(1)</script> beats" in reader.text
    assert "two lines" in reader.text
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
        (models, {"by": {"x": "y"}}),
        ({"als": totals}, {"by": {0: "a"}}),
        (cross(), {}),
    ):
        with raises(InvalidDataError):
            read(evaluations, **options)
    with raises(InvalidDataError):
        se.compare(cross(), by={0: "a"})
    assert not list(tmp_path.iterdir())


def test_a_former_argument_shows_what_to_use(models, tmp_path):
    for name, instead in (("curves", "pandas"), ("item_names", "Evaluation.explain")):
        with pytest.raises(TypeError, match=instead):
            se.write_report(models, tmp_path / "r.html", **{name: {}})


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
    assert "model nDCG@5" in text
    assert "show the 6 models with the best nDCG@5" in text
    assert "corrected for the 36 pairs of models" in text
    assert "compare(…).table has all pairs" in text
    assert text.count("best:") >= 3 * 7
    # What all have in common is said once.
    assert text.count(models["good"]._record["inputs"]["relevance"]["sha256"]) == 1
    assert text.count("231 in the means") == 1


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
        "model popularity@10lower is better gini@10lower is better ease best:",
        "The baseline “popularity” reaches popularity@10",
        "ease beats",
        "the lower a curve, the better",
        "Lower is better.",
        "difference of popularity@10lower is better",
    ):
        assert expected in text
    only = read({"ease": evs["ease"]}, "gini@10").text
    assert "popularitybaseline" in only
    popular = rounded(evs["pop"].summary().loc["gini@10"])
    assert f"The baseline “popularity” reaches gini@10 {popular}" in only


@pytest.mark.long
def test_segments_and_margins_have_tests_and_notes(models, read):
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
        "good against fair",
        "<b>city</b> users difference",
        f"<b>city</b>: {without} of 231 users have none and are in no segment",
        "corrected for these 6 differences",
        f"paid {row['n_users']} {format_number(row['difference'])}",
        "With a margin of",
        "equivalent",
    ):
        assert expected in reader.text
    assert reader.text.count("verdicts are by t-tests") == 1
    text = read({"good": models["good"]}, "coverage@10", by=by).text
    assert "coverage@10 is about all users together, so it is not shown by segment" in text
    assert "verdict" not in text


def test_intervals_are_drawn_on_one_scale(models, tmp_path):
    page = se.write_report(models, tmp_path / "r.html", "ndcg@5").read_text(encoding="utf-8")
    strips = re.findall('<svg class="strip".*?</svg>', page)
    assert len(strips) == 3 + 2  # the models, and the differences from the best
    low, high = models["good"].summary().loc["ndcg@5", ["ci_low", "ci_high"]]
    ((start, end),) = re.findall(r"M([0-9.]+) 6H([0-9.]+)\" stroke", strips[0])
    assert float(end) == 91  # the best interval ends the scale
    lowest = min(ev.summary().loc["ndcg@5", "ci_low"] for ev in models.values())
    share = (low - lowest) / (high - lowest)
    assert float(start) == pytest.approx(5 + 86 * share, abs=0.06)
    # The scale of differences begins at 0, because all are above it.
    assert all("V12" not in strip for strip in strips)
    row = {"difference": 1.0, "ci_low": -1.0, "ci_high": 3.0}
    assert '<path class="scale" d="M26.5 0V12"/>' in draw_interval(row, (-1.0, 3.0), "difference")


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
    for expected in (
        "data clicks.csv split random seed 1 users ",
        f"relevance 300 × 80, {holdout.validation.nnz:,} entries",
        "als2 model factors 2",
        "als16 model factors 16",
    ):
        assert expected in text
    assert "is no better" in text


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (
            (0.25, 0.2, 0.03, 0.07),
            "+25 % (0.25 against 0.20; 95 % interval of the difference +0.03 to +0.07; 9 users)",
        ),
        ((3e-300, 2e-300, 1e-300, 2e-300), "+50 % (3.00e−300 against 2.00e−300; 95 % interval"),
        ((1e300, -1e300, -1e300, 1.7e300), "(1.00e+300 against −1.00e+300; 95 % interval"),
        ((0.3, 1e-300, 0.2, 0.4), "(0.30 against 0.00; 95 % interval of the difference +0.20"),
        ((0.3, 0.2, 0.1, 0.1 + 2e-17), "+50 % (0.300000000 against 0.200000000; 95 % interval"),
    ],
)
def test_differences_in_words_stay_short(numbers, expected):
    a, b, low, high = numbers
    row = {"mean_a": a, "mean_b": b, "difference": a - b, "n_users": 9, "mean": a}
    assert in_words(row | {"ci_low": low, "ci_high": high}).startswith(expected)
    assert "svg" in draw_interval(row | {"ci_low": low, "ci_high": high}, (min(b, low), high))
