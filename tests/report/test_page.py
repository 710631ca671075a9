"""Test the report page: its statements, its structure, and odd input."""

import re
from html.parser import HTMLParser

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import reporting
from cross_cases import cross
from raising import raises
from scipy import stats
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, OutputError
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
        self.open = []
        self.elements = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in BLOCKS:
            self.text += " "
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.text += data


def rounded(row):
    """Return a mean as the page shows it."""
    return format_numbers(row["mean"], row["ci_low"], row["ci_high"])[0]


def read(path):
    reader = Reader(path.read_text(encoding="utf-8"))
    assert reader.open == []
    reader.text = " ".join(reader.text.split())
    return reader


#: Tests that look at charts.
DRAWN = {"test_page_has_every_section_and_number", "test_page_is_self_contained_and_reproducible"}


@pytest.fixture(autouse=True)
def charts(request, monkeypatch):
    if request.node.name not in DRAWN:
        reporting.draw_nothing(monkeypatch)


@pytest.fixture(scope="module")
def models():
    return reporting.three()


def test_headline_names_the_best_model(models, tmp_path):
    others_first = {name: models[name] for name in ("poor", "fair", "good")}
    path = se.write_report(others_first, tmp_path / "r.html", ["ndcg@10", "recall@10"])
    assert path == tmp_path / "r.html"
    assert [file.name for file in tmp_path.iterdir()] == ["r.html"]
    text = read(path).text
    assert "metric good poor fair random lists" in text
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


@pytest.mark.filterwarnings("error:too few users")  # the page has a note, so nothing warns
def test_statements_about_models(models, tmp_path):
    good, fair, poor = models.values()
    two, many = {"poor": poor, "fair": fair}, {f"poor{number}": poor for number in range(7)}
    detectable = format_number(se.compare(two).table["detectable"][0])
    row = good.summary().loc["ndcg@5"]
    equal, lift = format_number(row["mean"]), f"{row['lift']:,.3g}"
    path = "nightly/2026-11-24/als-factors-{}-regularization-0.05-iterations-15.npz"
    each = csr_matrix(np.eye(2))
    lists = se.Rankings.from_topk([[0], [1]])
    undefined = se.evaluate(lists, each, "auc", train=each[::-1])
    ids = np.where(np.arange(50)[:, None] < 9, [1, 0], [1, 2])
    first_item = csr_matrix(np.tile([1.0, 0, 0], (50, 1)))
    few = se.evaluate(se.Rankings.from_topk(ids), first_item, "hit_rate@2")
    ranks = reporting.evaluate(1, 0.5, whole=False)
    long = {path.format(8): poor, path.format(64): good}
    reached = f"{rounded(row)} (95 % interval"
    statements = [
        (long, "factors-64 beats factors-8: nDCG@5", f"models factors-8 {path.format(8)}"),
        (
            many | {"good": good},
            "good has the best nDCG@5 of 8 models and beats every other model.",
        ),
        (many, "of 7 models and beats no other model: no difference is significant."),
        (
            two,
            "No significant difference between poor and fair",
            f"a difference of {detectable} would",
        ),
        (
            {"a": good, "b": good},
            f"a and b are equal: nDCG@5 {equal}, the same for each of the 231",
        ),
        ({"good": good}, f"good reaches nDCG@5 {reached}", f"{lift} times as good as random lists"),
        ({"a": undefined, "b": undefined}, "AUC is not defined for any user."),
        ({"als": few}, "als: too few users for the intervals of hit_rate@2"),
        ({"ranks": ranks}, "Only the ranks of relevant items were computed"),
    ]
    for evs, *sentences in statements:
        text = read(se.write_report(evs, tmp_path / "r.html", title="<Title>")).text
        assert text.startswith("<Title>")
        for sentence in sentences:
            assert sentence in text
    assert "Concentration" not in text  # the lists of the last page are not known
    n_shown = sum(not example["whole"] for example in ranks.record["examples"])
    assert text.count(sentence) == n_shown > 0


def test_page_has_every_section_and_number(models, tmp_path):
    history = pd.DataFrame({"ndcg@5": [0.1, 0.2]}, index=pd.Index([1, 2], name="iteration"))
    options = {"curves": {"run": history}, "left_out": {"x": "is <broken>"}}
    reader = read(se.write_report(models, tmp_path / "r.html", **options))
    charts = [
        "nDCG@5 of each model", "nDCG@5 of the best minus the other models", "nDCG by cut-off",
        "recall by cut-off",
        "nDCG@5 of individual users", "Precision and recall", "nDCG@5 by user activity",
        "recall@5 by item popularity", "Concentration of the recommendations",
        "Lift over random lists", "Learning curve: run",
    ]  # fmt: skip
    n_drawn = sum(attributes.get("class") == "chart" for _, attributes in reader.elements)
    assert n_drawn == len(charts)
    good = models["good"]
    relevant = [row for row in good.record["examples"][0]["listed"] if row["gain"]]
    for expected in (
        *charts,
        "All metrics", "Charts", "Comparison", "Who wins, who loses", "Individual users",
        "How metrics were computed", "How to reproduce this", "Left out", "x: is <broken>",
        *(rounded(ev.summary().loc[name]) for ev in models.values() for name in good.names),
        # A user in depth, down to the cut-off of the main metric.
        *(
            f"{row['item']} relevant {format_number(row['contribution'])}"
            for row in relevant
            if row["rank"] <= 5
        ),
        good.record["inputs"]["relevance"]["sha256"], f"numpy {np.__version__}",
    ):  # fmt: skip
        assert expected in reader.text
    # What the metrics say, once each.
    for name in ("recall", "coverage"):
        assert reader.text.count(REGISTRY[name].plain) == 1


def test_names_metrics_by_which_another_model_is_better(tmp_path):
    # a hits fewer users, at rank 1; b hits all users, at rank 5.
    held_out = csr_matrix(np.tile(np.arange(6) == 5, (400, 1)).astype(float))
    ids = np.tile(np.arange(5), (400, 1))
    a, b = ids.copy(), ids.copy()
    a[:200, 0], b[:, 4] = 5, 5
    metrics = ["mrr@5", "hit_rate@5", "hit_rate@1"]
    models = {
        name: se.evaluate(se.Rankings.from_topk(lists), held_out, metrics)
        for name, lists in (("a", a), ("b", b))
    }
    reader = read(se.write_report(models, tmp_path / "r.html"))
    assert "a beats b: MRR@5" in reader.text
    assert "By hit rate@5, b is better than a." in reader.text
    # Only values that no other is significantly better than have a star.
    assert reader.text.count("best:") == 3


def test_models_are_ranked_on_the_users_compared(tmp_path):
    # a is evaluated on easy users only; b is better on these, and poor on all others.
    easy = np.arange(300) < 100
    held_out = np.tile(np.arange(6) == 5, (300, 1))
    models = {}
    for name, rank, users in (("a", 1, easy), ("b", 0, ~easy | easy)):
        ids = np.tile(np.arange(5), (300, 1))
        ids[easy, rank] = 5
        truth = csr_matrix((held_out & users[:, None]).astype(float))
        models[name] = se.evaluate(se.Rankings.from_topk(ids), truth, "mrr@5")
    assert models["a"]["mrr@5"] > models["b"]["mrr@5"]
    text = read(se.write_report(models, tmp_path / "r.html")).text
    assert "compared on the 100 users that all have; left out: 200 of the 300 of b" in text
    assert "b beats a: MRR@5 1.0 against 0.5" in text
    assert "b against a, by relevant items of the user" in text
    assert text.count("best:") == 1


def test_subgroups_have_wins_and_losses(models, tmp_path):
    good, fair = (models[name] for name in ("good", "fair"))
    text = read(se.write_report({"good": good, "fair": fair}, tmp_path / "r.html")).text
    difference = good.per_user["ndcg@5"] - fair.per_user["ndcg@5"]
    counts = {"training": good.n_seen, "relevant": good.n_relevant}
    both = pd.DataFrame({"difference": difference, **counts}).dropna()
    ends = []
    for by, column in bands_of_users(good).items():
        for band in column.cat.categories[column.value_counts(sort=False) > 0]:
            low, _, high = band.replace("cold", "0").removesuffix(" items").partition("–")
            own = both[str(by).partition(" ")[0]].between(int(low), int(high or low))
            inside, interval = both["difference"][own], "no interval"
            if len(inside) >= 10:
                test = stats.ttest_1samp(inside, 0)
                interval = " to ".join(format_numbers(*test.confidence_interval(0.95)))
                ends.append(test.confidence_interval(0.95).high)
            shares = format_shares(*(sum(np.sign(inside) == sign) for sign in (1, 0, -1)))
            numbers = f"{format_number(inside.mean())}{interval} {' '.join(shares)}"
            assert f"{band} {len(inside)} {numbers}" in text
    assert ("In no band is good significantly worse." in text) == (min(ends) >= 0)


def test_page_is_self_contained_and_reproducible(models, tmp_path):
    path = se.write_report(reporting.three(odd=True), tmp_path / "r.html")
    page, reader = path.read_text(encoding="utf-8"), read(path)
    tags = {tag for tag, _ in reader.elements}
    assert not tags & {"script", "img", "iframe", "object", "embed", "link", "base", "form"}
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
    assert not re.findall(r"url\((?!#)", page)
    assert "@import" not in page
    assert path.stat().st_size < 2_000_000
    # Odd labels stay text.
    assert "<script>alert(1)</script> beats" in reader.text
    assert "two lines" in reader.text
    assert "49" not in re.findall(r"User (\S+)", reader.text)  # no template was run
    # The same bytes, whatever matplotlib settings the process has.
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red"}):
        again = se.write_report(reporting.three(odd=True), tmp_path / "again.html")
    assert again.read_bytes() == path.read_bytes()


def test_a_loaded_evaluation_makes_the_same_page(models, tmp_path):
    page = tmp_path / "r.html"
    loaded = se.Evaluation.load(models["good"].save(tmp_path / "good"))
    expected = se.write_report({"a": models["good"]}, page).read_bytes()
    assert se.write_report({"a": loaded}, page).read_bytes() == expected


def test_refuses_unusable_evaluations_and_folders(models, tmp_path):
    out = tmp_path / "r.html"
    lists, truth = se.Rankings.from_topk([[1]]), csr_matrix([[0, 1]])
    one, totals = (se.evaluate(lists, truth, "ndcg@5", keep=keep) for keep in ("values", "totals"))
    refused = [
        ({}, {}),
        (models, {"metrics": []}),
        (models, {"metrics": "map@3"}),
        (models | {"other": one}, {"metrics": "ndcg@5", "how": "same"}),
        ({1: models["good"], "1": models["fair"]}, {}),
        (models, {"item_names": {"other": "x"}}),
        (models, {"by": {"x": "y"}}),
        ({"als": totals}, {"by": {0: "a"}}),
        (cross(), {"by": {0: "a"}}),
        (models, {"metrics": "ndcg@10", "margin": {"recall@10": 0.1}}),
    ]
    for evaluations, options in refused:
        with raises(InvalidDataError):
            se.write_report(evaluations, out, **options)
    with raises(InvalidDataError):
        se.compare(cross(), by={0: "a"})
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    with raises(OutputError):
        se.write_report({"one": one}, tmp_path / "file" / "r.html")


def test_display_in_notebooks(models):
    ev = models["good"]
    reader = Reader(ev._repr_html_())
    assert reader.open == []
    assert rounded(ev.summary().loc["ndcg@5"]) in reader.text
    compared = se.compare(reporting.three(odd=True))
    reader = Reader(compared._repr_html_())
    assert "<script>alert(1)</script>" in reader.text
    assert "script" not in {tag for tag, _ in reader.elements}
    assert "Holm's correction over 21 differences" in reader.text
    assert "not significant" in repr(se.compare(models, "ndcg@5"))
    many = {f"model {number}": ev for number in range(5)}
    shown = se.compare(many)
    assert "b" in shown.shown()
    assert len(shown.shown()) == 4 * 7
    assert "all 70 rows: .table" in shown._repr_html_()
    assert "all 70 rows: .table" in repr(shown)


def test_names_of_items_are_beside_them(tmp_path):
    items = [*reporting.ODD, *(f"i{n}" for n in range(49))]
    titles = ["<b>bold</b>", "{{ 7 * 7 }}", *(f"Title {n}" for n in range(57))]
    years = [*range(1950, 2008), None]
    names = pd.DataFrame({"item": items, "title": titles, "year": years})
    models = reporting.three(odd=True)
    page = se.write_report(models, tmp_path / "b.html", "ndcg@10", item_names=names)
    reader = read(page)
    assert "script" not in {tag for tag, _ in reader.elements}
    assert "<b>bold</b>" not in page.read_text(encoding="utf-8")
    title = dict(zip(items, titles, strict=True))
    examples = [example for ev in models.values() for example in ev.record["examples"]]
    for example in examples:
        for row in (*example["listed"], *example["missed"]):
            assert title.get(row["item"], "") in reader.text
    missed = {row["item"] for example in examples for row in example["missed"]}
    some = min(missed & {f"i{n}" for n in range(48)})
    assert f"{some} ({title[some]}, {years[items.index(some)]}" in reader.text


@pytest.mark.filterwarnings("ignore:metrics among sampled candidates")
def test_metrics_among_candidates_are_called_so(tmp_path):
    clicks = se.datasets.synthetic(n_users=60, n_items=200, n_interactions=900, seed=0)
    holdout = se.split.leave_k_out(clicks, seed=0)
    candidates = se.sample_negatives(holdout, n=9)
    model = se.baselines.random(holdout, seed=1)
    ev = se.evaluate_model(model, holdout, "ndcg@5", candidates=candidates, baselines=True)
    page = read(se.write_report({"random": ev}, tmp_path / "r.html"))
    assert "The baseline “popularity” reaches nDCG@5 (1+9)" in page.text
    assert "random is no better" in page.text
    assert "can rank models differently" in page.text


def test_many_models_are_rows_and_few_are_drawn(models, tmp_path):
    many = {f"{name} {n}": ev for n in range(3) for name, ev in models.items()}
    text = read(se.write_report(many, tmp_path / "r.html")).text
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
    assert text.count(models["good"].record["inputs"]["relevance"]["sha256"]) == 1
    assert text.count("231 users are included in the means") == 1


def test_says_where_lower_is_better_and_which_model_is_a_baseline(tmp_path):
    clicks = se.datasets.synthetic(n_users=300, n_items=80, seed=1)
    holdout = se.split.random(clicks, seed=1)
    pop, ease = (
        se.evaluate_model(model, holdout, ["popularity@10", "gini@10"], baselines=True)
        for model in (
            se.baselines.popularity(holdout),
            se.baselines.ease(holdout, regularization=9),
        )
    )
    text = read(se.write_report({"pop": pop, "ease": ease}, tmp_path / "r.html")).text
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
    only = read(se.write_report({"ease": ease}, tmp_path / "r.html", "gini@10")).text
    assert "metric ease popularitybaseline random lists" in only
    popular = rounded(pop.summary().loc["gini@10"])
    assert f"The baseline “popularity” reaches gini@10 {popular}" in only
    assert "times as good" not in only


def test_segments_have_tests_and_charts(models, tmp_path):
    by = pd.DataFrame(
        {"plan": ["free", "paid"] * 120, "<b>city</b>": ["Rome"] * 100 + [None] * 140}
    )
    reader = read(se.write_report(models, tmp_path / "r.html", "ndcg@10", by=by))
    assert "nDCG@10 by plan" in reader.text
    assert "good against fair, by plan:" in reader.text
    assert "good against poor, by <b>city</b>:" in reader.text
    assert "b" not in {tag for tag, attributes in reader.elements if attributes}
    without = int(models["good"].counted[100:].sum())
    assert f"<b>city</b>: {without} of 231 users have none and are in no segment" in reader.text
    assert "corrected for these 6 differences" in reader.text
    rows = se.compare(models, "ndcg@10", by=by, correction="none").table
    row = rows[(rows["segment"] == "paid") & (rows["b"] == "fair")].iloc[0]
    assert f"paid {row['n_users']} {format_number(row['difference'])}" in reader.text
    one = {"good": models["good"]}
    overall = read(se.write_report(one, tmp_path / "r.html", "coverage@10", by=by)).text
    assert "coverage@10 is about all users together, so it is not shown by segment" in overall


def test_names_subgroups_and_segments_for_which_the_best_model_is_worse(tmp_path):
    # a is better for all users but those with the most training items.
    seen = np.arange(400) // 100 + 1
    train = csr_matrix(np.arange(100) < seen[:, None], dtype=float)
    held_out = csr_matrix(np.tile(np.arange(101) == 100, (400, 1)), dtype=float)
    many, noise = seen == 4, np.random.default_rng(0).random(400) < 0.1
    evs = {}
    for name, good in (("a", ~many), ("b", many)):
        ids = np.where((good != noise)[:, None], [100, 98, 99], [98, 99, 100])
        evs[name] = se.evaluate(se.Rankings.from_topk(ids), held_out, "mrr@3", train=train)
    plans = pd.Series(np.where(many, "paid", "free"), name="plan")
    text = read(se.write_report(evs, tmp_path / "r.html", by=plans)).text
    assert "a beats b" in text
    assert "But a is worse than b for users with 4 training items." in text
    assert "But a is worse than b for users of plan paid." in text
    assert "In no band" not in text


def test_a_margin_adds_verdicts(models, tmp_path):
    plans = {user: "xy"[user % 2] for user in range(models["good"].all_users.index.size)}
    options = {"by": plans, "margin": {"ndcg@10": "1%", "recall@10": 0.5}}
    names = ["ndcg@10", "recall@10", "mrr@10"]
    text = read(se.write_report(models, tmp_path / "r.html", names, **options)).text
    for expected in ("With a margin of", "grey band", "equivalent"):
        assert expected in text
    assert "verdict" not in read(se.write_report(models, tmp_path / "s.html", names)).text


def test_intervals_are_drawn_on_one_scale(models, tmp_path):
    page = se.write_report(models, tmp_path / "r.html", "ndcg@5").read_text(encoding="utf-8")
    strips = re.findall('<svg class="strip".*?</svg>', page)
    assert len(strips) == 4  # three models and random lists
    mean, low, high = models["good"].summary().loc["ndcg@5", ["mean", "ci_low", "ci_high"]]
    assert "95 % interval {1} to {2}".format(*format_numbers(mean, low, high)) in strips[0]
    ((start, end),) = re.findall(r"M([0-9.]+) 6H([0-9.]+)\" stroke", strips[0])
    assert float(end) == 107  # the best interval ends the scale
    lowest = min(ev.random("ndcg@5").mean for ev in models.values())
    share = (low - lowest) / (high - lowest)
    assert float(start) == pytest.approx(5 + 102 * share, abs=0.06)
    assert "no interval" in strips[3]


def test_random_lists_have_the_interval_of_their_draws():
    low, high = stats.t.interval(0.95, DRAWS - 1, 0.2, 0.01)
    cell = _random_cell({"random": 0.2, "random_se": 0.01})
    assert cell == {"mean": 0.2, "ci_low": pytest.approx(low), "ci_high": pytest.approx(high)}
    for exact in ({"random": 0.2, "random_se": 0.0}, {"random": None, "random_se": None}):
        assert _random_cell(exact)["ci_low"] is None


def test_notes_and_reasons_of_users(models, tmp_path):
    by = {user: str(user)[-1] for user in models["good"].evaluated_users}
    options = {"margin": 0.01, "by": by, "test": "wilcoxon"}
    path = se.write_report(models, tmp_path / "r.html", ["recall@5", "mrr@10"], **options)
    text = read(path).text
    assert text.count("verdicts are by t-tests") == 1
    assert "best by nDCG@5" in text  # the first metric of the evaluation, not of the page


def test_control_characters_are_escaped(models, tmp_path):
    named = {"a\u202eb": models["good"], "c\x07": models["poor"]}
    page = se.write_report(named, tmp_path / "r.html", "ndcg@5", title="\u202etitle")
    text = page.read_text(encoding="utf-8")
    assert not re.search("[\x00-\x08\u202a-\u202e]", text)
    assert "a\\u202eb" in text
    assert "c\\u0007" in text


def test_says_how_the_results_were_made(tmp_path):
    clicks = se.datasets.synthetic(n_users=300, n_items=80, seed=1)
    holdout = se.split.random(clicks, seed=1)
    evs = {}
    for factors, name in ((2, "als2"), (16, "als16")):
        model = se.train_als(holdout.train, factors=factors, iterations=2)
        ev = se.evaluate_model(model, holdout, ["ndcg@5", "recall@5"], baselines=True)
        about = {"data": "clicks.csv", "split": "random", "model": {"factors": factors}, "seed": 1}
        evs[name] = se.Evaluation.load(ev.save(tmp_path / name, about=about))
    text = read(se.write_report(evs, tmp_path / "r.html")).text
    best = max(evs, key=lambda name: evs[name]["ndcg@5"])
    for expected in (
        f"Data clicks.csv, 300 users × 80 items, {holdout.validation.nnz:,} relevant pairs",
        "Split random Evaluated with sparse_eval ",
        f"Parameters of {best} factors {best[3:]}, seed 1",
    ):
        assert expected in text
    popular = evs[best].baselines["popularity"].summary().loc["ndcg@5", "ci_low"]
    beaten = min(ev.summary().loc["ndcg@5", "ci_high"] for ev in evs.values()) < popular
    assert ("The baseline “popularity” beats" in text) == beaten


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((1, 1, 1), ["34 %", "33 %", "33 %"]),
        ((2, 0, 0), ["100 %", "0 %", "0 %"]),
        ((999, 0, 1), ["100 %", "0 %", "< 1 %"]),
        ((0, 0, 0), ["–", "–", "–"]),
    ],
)
def test_shares_add_to_100(parts, expected):
    assert format_shares(*parts) == expected


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        (
            (0.25, 0.2, 0.03, 0.07),
            "+25 % (0.25 against 0.20; 95 % interval of the difference +0.03 to +0.07",
        ),
        ((3e-300, 2e-300, 1e-300, 2e-300), "+50 % (3.00e−300 against 2.00e−300; 95 % interval"),
        ((1e308, -1e308, -1e308, 1.7e308), "(1.00e+308 against −1.00e+308; 95 % interval"),
        (
            (0.3, 1e-300, 0.2, 0.4),
            "(0.30 against 0.00; 95 % interval of the difference +0.20 to +0.40; 9 users)",
        ),
        ((0.3, 0.2, 0.1, 0.1 + 2e-17), "+50 % (0.300000000 against 0.200000000; 95 % interval"),
    ],
)
def test_differences_in_words_stay_short(numbers, expected):
    a, b, low, high = numbers
    row = {"mean_a": a, "mean_b": b, "difference": a - b, "n_users": 9, "mean": a}
    assert in_words(row | {"ci_low": low, "ci_high": high}).startswith(expected)
    assert "nan" not in draw_interval(row | {"ci_low": low, "ci_high": high}, (min(b, low), high))
