"""Test the report page: its statements, its structure, and odd input."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

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
from sparse_eval.report.page import bands_of_users
from sparse_eval.report.style import format_number, format_numbers, format_shares

VOID = {"meta", "br", "wbr", "link", "img", "input", "hr"}
BLOCKS = {"td", "th", "tr", "li", "p", "div", "dt", "dd", "h2", "h3", "h4", "text", "figcaption"}


class Reader(HTMLParser):
    """Parse a page: its text, its elements, and whether every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag in BLOCKS:
            self.text += " "
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


def rounded(row: Any) -> str:
    """Return a mean as the page shows it."""
    return format_numbers(row["mean"], row["ci_low"], row["ci_high"])[0]


def read(path: Path) -> Reader:
    reader = Reader(path.read_text(encoding="utf-8"))
    assert reader.open == []
    reader.text = " ".join(reader.text.split())
    return reader


@pytest.fixture(scope="module")
def models() -> dict[str, se.Evaluation]:
    return reporting.three()


def test_headline_names_the_best_model(models: dict[str, se.Evaluation], tmp_path: Path) -> None:
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
        f"interval +{ends[0]:.2f} to +{ends[1]:.2f}; 231 users)."
    ) in text
    shares = format_shares(row["wins"], row["ties"], row["losses"])
    assert sum(int(share.removesuffix(" %")) for share in shares) == 100
    assert "better for {} of the users, equal for {}, worse for {}.".format(*shares) in text


def test_long_names_keep_what_differs(models: dict[str, se.Evaluation], tmp_path: Path) -> None:
    name = "nightly/2026-11-24/als-factors-{}-regularization-0.05-iterations-15.npz"
    long = {
        name.format(factors): models["good" if factors == 64 else "poor"] for factors in (8, 64)
    }
    text = read(se.write_report(long, tmp_path / "r.html", "ndcg@10")).text
    assert "factors-64 beats factors-8: nDCG@10" in text
    assert f"Full names of the models factors-8 {name.format(8)}" in text


def test_many_models_are_counted(models: dict[str, se.Evaluation], tmp_path: Path) -> None:
    many = {f"poor{number}": models["poor"] for number in range(7)}
    text = read(se.write_report(many | {"good": models["good"]}, tmp_path / "r.html")).text
    assert "good has the best nDCG@5 of 8 models and beats every other model." in text
    same = read(se.write_report(many, tmp_path / "s.html", "ndcg@5")).text
    assert "of 7 models and beats no other model: no difference is significant." in same


def test_insignificant_difference_comes_with_the_detectable_one(
    models: dict[str, se.Evaluation], tmp_path: Path
) -> None:
    two = {name: models[name] for name in ("poor", "fair")}
    text = read(se.write_report(two, tmp_path / "r.html")).text
    assert "No significant difference between poor and fair" in text
    detectable = se.compare(two).table["detectable"][0]
    assert (
        f"With 231 users, a difference of {format_number(detectable)} would be detected in 80 of "
        "100" in text
    )
    same = {"a": models["good"], "b": models["good"]}
    text = read(se.write_report(same, tmp_path / "r.html")).text
    equal = format_number(models["good"]["ndcg@5"])
    assert f"a and b are equal: nDCG@5 {equal}, the same for each of the 231 users." in text


def test_report_of_one_model(models: dict[str, se.Evaluation], tmp_path: Path) -> None:
    reader = read(se.write_report({"good": models["good"]}, tmp_path / "r.html", title="<One>"))
    row = models["good"].summary().loc["ndcg@5"]
    assert f"good reaches nDCG@5 {rounded(row)} (95 % interval" in reader.text
    assert f"{row['lift']:,.3g} times as good as random lists" in reader.text
    assert reader.text.startswith("<One>")


def test_page_has_every_section_and_number(
    models: dict[str, se.Evaluation], tmp_path: Path
) -> None:
    history = pd.DataFrame({"ndcg@5": [0.1, 0.2]}, index=pd.Index([1, 2], name="iteration"))
    reader = read(
        se.write_report(
            models, tmp_path / "r.html", curves={"run": history}, left_out={"x": "is <broken>"}
        )
    )
    charts = [
        "nDCG@5 of each model", "nDCG@5 of the best minus the other models", "nDCG by cut-off",
        "recall by cut-off",
        "nDCG@5 of individual users", "Precision and recall", "nDCG@5 by user activity",
        "recall@5 by item popularity", "Concentration of the recommendations",
        "Lift over random lists", "Learning curve: run",
    ]  # fmt: skip
    headings = [
        "All metrics", "Charts", "Comparison", "Who wins, who loses", "Individual users",
        "How metrics were computed", "How to reproduce this", "Left out",
    ]  # fmt: skip
    for expected in [*charts, *headings]:
        assert expected in reader.text
    assert "x: is <broken>" in reader.text
    assert sum(attributes.get("class") == "chart" for _, attributes in reader.elements) == len(
        charts
    )
    # Every number of the table.
    for name in models["good"].names:
        for ev in models.values():
            assert rounded(ev.summary().loc[name]) in reader.text
    # A user in depth, down to the cut-off of the main metric.
    example = models["good"].record["examples"][0]
    for row in example["listed"]:
        if row["gain"] and row["rank"] <= 5:
            assert f"{row['item']} relevant {format_number(row['contribution'])}" in reader.text
    # What the metrics say, once each.
    for name in ("recall", "coverage"):
        assert reader.text.count(REGISTRY[name].plain) == 1
    # How to reproduce it.
    content = models["good"].record
    for expected in (content["inputs"]["relevance"]["sha256"], f"numpy {np.__version__}"):
        assert expected in reader.text


def test_names_metrics_by_which_another_model_is_better(tmp_path: Path) -> None:
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


def test_models_are_ranked_on_the_users_compared(tmp_path: Path) -> None:
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


def test_subgroups_have_wins_and_losses(models: dict[str, se.Evaluation], tmp_path: Path) -> None:
    good, fair = (models[name] for name in ("good", "fair"))
    text = read(se.write_report({"good": good, "fair": fair}, tmp_path / "r.html")).text
    difference = good.per_user["ndcg@5"] - fair.per_user["ndcg@5"]
    counts = {"training": good.n_seen, "relevant": good.n_relevant}
    both = pd.DataFrame({"difference": difference, **counts}).dropna()
    bands = bands_of_users(good)
    for by, column in bands.items():
        for band in column.cat.categories[column.value_counts(sort=False) > 0]:
            low, _, high = band.replace("cold", "0").removesuffix(" items").partition("–")
            own = both[both[str(by).partition(" ")[0]].between(int(low), int(high or low))]
            inside, interval = own["difference"], "no interval"
            if len(inside) >= 10:
                test = stats.ttest_1samp(inside, 0)
                interval = " to ".join(format_numbers(*test.confidence_interval(0.95)))
            signs = np.sign(inside)
            shares = format_shares(*(sum(signs == sign) for sign in (1, 0, -1)))
            assert (
                f"{band} {len(inside)} {format_number(inside.mean())}{interval} {' '.join(shares)}"
            ) in text


def test_page_is_self_contained_and_reproducible(
    models: dict[str, se.Evaluation], tmp_path: Path
) -> None:
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


def test_evaluations_of_ranks_have_fewer_charts(tmp_path: Path) -> None:
    ranks = reporting.evaluate(1, 0.5, whole=False)
    text = read(se.write_report({"ranks": ranks}, tmp_path / "r.html")).text
    assert "Concentration" not in text
    shown = [e for e in ranks.record["examples"] if not e["whole"]]
    assert text.count("Only the ranks of relevant items were computed") == len(shown) > 0


def test_a_loaded_evaluation_makes_the_same_page(
    models: dict[str, se.Evaluation], tmp_path: Path
) -> None:
    good = models["good"]
    loaded = se.Evaluation.load(good.save(tmp_path / "good"))
    one, other = (
        se.write_report({"a": ev}, tmp_path / "r.html").read_bytes() for ev in (good, loaded)
    )
    assert one == other


def test_refuses_unusable_evaluations_and_folders(
    models: dict[str, se.Evaluation], tmp_path: Path
) -> None:
    out = tmp_path / "r.html"
    one = se.evaluate(se.Rankings.from_topk([[1]]), csr_matrix([[0, 1]]), "ndcg@5")
    refused: list[tuple[Any, dict[str, Any]]] = [
        ({}, {}),
        (models, {"metrics": []}),
        (models, {"metrics": "map@3"}),
        (models | {"other": one}, {"metrics": "ndcg@5", "how": "same"}),
        ({1: models["good"], "1": models["fair"]}, {}),
        (models, {"item_names": {"other": "x"}}),
        (models, {"by": {"x": "y"}}),
    ]
    for evaluations, options in refused:
        with raises(InvalidDataError):
            se.write_report(evaluations, out, **options)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").touch()
    with raises(OutputError):
        se.write_report({"one": one}, tmp_path / "file" / "r.html")


def test_metric_that_is_undefined_for_all_users(tmp_path: Path) -> None:
    lists = se.Rankings.from_topk([[0], [1]])
    ev = se.evaluate(lists, csr_matrix([[1, 0], [0, 1]]), "auc", train=csr_matrix([[0, 1], [1, 0]]))
    assert np.isnan(ev["auc"])
    text = read(se.write_report({"a": ev, "b": ev}, tmp_path / "r.html")).text
    assert "AUC is not defined for any user." in text


def test_display_in_notebooks(models: dict[str, se.Evaluation]) -> None:
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


NAMES = pd.DataFrame(
    {
        "item": [*reporting.ODD, *(f"i{n}" for n in range(49))],
        "title": ["<b>bold</b>", "{{ 7 * 7 }}", *(f"Title {n}" for n in range(57))],
        "year": [*range(1950, 2008), None],
    }
)


def test_names_of_items_are_beside_them(tmp_path: Path) -> None:
    models = reporting.three(odd=True)
    page = se.write_report(models, tmp_path / "b.html", "ndcg@10", item_names=NAMES)
    reader = read(page)
    assert "script" not in {tag for tag, _ in reader.elements}
    title = dict(zip(NAMES["item"], NAMES["title"], strict=True))
    listed, missed = set(), set()
    for ev in models.values():
        for example in ev.record["examples"]:
            listed |= {row["item"] for row in example["listed"]}
            missed |= {row["item"] for row in example["missed"]}
    for item in listed | missed:
        assert title.get(item, "") in reader.text
    assert "<b>bold</b>" not in page.read_text(encoding="utf-8")
    years = NAMES.dropna().set_index("item")["year"]
    some = min(item for item in missed & set(years.index) if item.strip() and len(item) < 5)
    assert f"{some} ({title[some]}, {years[some]}" in reader.text


@pytest.mark.filterwarnings("error:too few users")  # the page has a note, so nothing warns
def test_a_page_notes_means_of_few_users(tmp_path: Path) -> None:
    ids = np.tile([1, 2], (50, 1))
    ids[:9, 1] = 0
    held_out = csr_matrix(np.tile([1.0, 0, 0], (50, 1)))
    ev = se.evaluate(se.Rankings.from_topk(ids), held_out, "hit_rate@2")
    text = read(se.write_report({"als": ev}, tmp_path / "r.html")).text
    assert "als: too few users for the intervals of hit_rate@2" in text


@pytest.mark.filterwarnings("ignore:metrics among sampled candidates")
def test_metrics_among_candidates_are_called_so(tmp_path: Path) -> None:
    clicks = se.datasets.synthetic(n_users=60, n_items=200, n_interactions=900, seed=0)
    holdout = se.split.leave_k_out(clicks, seed=0)
    candidates = se.sample_negatives(holdout, n=9)
    model = se.baselines.random(holdout, seed=1)
    ev = se.evaluate_model(model, holdout, "ndcg@5", candidates=candidates, baselines=True)
    page = read(se.write_report({"random": ev}, tmp_path / "r.html"))
    assert "The baseline “popularity” reaches nDCG@5 (1+9)" in page.text
    assert "random is no better" in page.text
    assert "can rank models differently" in page.text


def test_many_models_are_rows_and_few_are_drawn(
    models: dict[str, se.Evaluation], tmp_path: Path
) -> None:
    many = {f"{name} {n}": ev for n in range(3) for name, ev in models.items()}
    text = read(se.write_report(many, tmp_path / "r.html")).text
    assert "model nDCG@5" in text
    assert "model recall(average=micro)@10" in text
    assert text.count("best:") >= 3 * 7
    assert "show the 6 models with the best nDCG@5" in text
    assert "Lists of the other 6 models" in text
    assert "By nDCG@5, the other 28 pairs" in text
    # What all have in common is said once.
    assert text.count(models["good"].record["inputs"]["relevance"]["sha256"]) == 1
    assert text.count("231 users are included in the means") == 1


def test_says_where_lower_is_better_and_which_model_is_a_baseline(tmp_path: Path) -> None:
    clicks = se.datasets.synthetic(n_users=300, n_items=80, seed=1)
    holdout = se.split.random(clicks, seed=1)
    models = {
        "pop": se.baselines.popularity(holdout),
        "ease": se.baselines.ease(holdout, regularization=9),
    }
    metrics = ["popularity@10", "gini@10"]
    evs = {
        name: se.evaluate_model(model, holdout, metrics, baselines=True)
        for name, model in models.items()
    }
    text = read(se.write_report(evs, tmp_path / "r.html")).text
    assert "metric ease pop random lists" in text
    assert "pop has the values of the baseline “popularity”" in text
    for expected in (
        "ease beats",
        "the lower a curve, the better",
        "gini@10lower is better",
        "Lower is better.",
        "difference of popularity@10lower is better",
    ):
        assert expected in text
    # Random lists have the best gini, so that "0.3 times as good" would mislead.
    alone = read(se.write_report({"ease": evs["ease"]}, tmp_path / "r.html", "gini@10")).text
    assert "metric ease popularitybaseline random lists" in alone
    popular = rounded(evs["pop"].summary().loc["gini@10"])
    assert f"The baseline “popularity” reaches gini@10 {popular}" in alone
    assert "times as good" not in alone


def test_segments_have_tests_and_charts(models: dict[str, se.Evaluation], tmp_path: Path) -> None:
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


def test_names_subgroups_and_segments_for_which_the_best_model_is_worse(tmp_path: Path) -> None:
    # a is better for all users but those with the most training items.
    seen = np.arange(400) // 100 + 1
    train = csr_matrix(np.arange(100) < seen[:, None], dtype=float)
    held_out = csr_matrix(np.tile(np.arange(101) == 100, (400, 1)), dtype=float)
    many = seen == 4
    first, third = np.array([100, 98, 99]), np.array([98, 99, 100])
    noise = np.random.default_rng(0).random(400) < 0.1
    lists = [np.where((good != noise)[:, None], first, third) for good in (~many, many)]
    a, b = (
        se.evaluate(se.Rankings.from_topk(ids), held_out, "mrr@3", train=train) for ids in lists
    )
    plans = pd.Series(np.where(many, "paid", "free"), name="plan")
    text = read(se.write_report({"a": a, "b": b}, tmp_path / "r.html", by=plans)).text
    assert "a beats b" in text
    assert "But a is worse than b for users with 4 training items." in text
    assert "But a is worse than b for users of plan paid." in text


def test_refuses_segments_without_values_of_the_users(tmp_path: Path) -> None:
    lists = se.Rankings.from_topk([[0, 1], [1, 0]])
    ev = se.evaluate(lists, csr_matrix([[1, 0], [1, 0]]), "mrr@2", keep="totals")
    with raises(InvalidDataError):
        se.write_report({"als": ev}, tmp_path / "r.html", by={0: "a", 1: "b"})
    for refused in (se.compare, lambda cv, by: se.write_report(cv, tmp_path / "r.html", by=by)):
        with raises(InvalidDataError):
            refused(cross(), by={0: "a"})


def test_a_margin_adds_verdicts(tmp_path: Path) -> None:
    models = reporting.three()
    plans = {user: "xy"[user % 2] for user in range(models["good"].all_users.index.size)}
    options: Any = {"by": plans, "margin": {"ndcg@10": "1%", "recall@10": 0.5}}
    names = ["ndcg@10", "recall@10", "mrr@10"]
    text = read(se.write_report(models, tmp_path / "r.html", names, **options)).text
    assert "With a margin of" in text
    assert "grey band" in text
    assert "equivalent" in text
    assert "verdict" not in read(se.write_report(models, tmp_path / "s.html", names)).text
    with raises(InvalidDataError, argument="margin"):
        se.write_report(models, tmp_path / "r.html", "ndcg@10", margin={"recall@10": 0.1})


def test_intervals_are_drawn_on_one_scale(models: dict[str, se.Evaluation], tmp_path: Path) -> None:
    page = se.write_report(models, tmp_path / "r.html", "ndcg@5").read_text(encoding="utf-8")
    strips = re.findall('<svg class="strip".*?</svg>', page)
    assert len(strips) == 4  # three models and random lists
    table = models["good"].summary().loc["ndcg@5"]
    low, high = format_numbers(table["mean"], table["ci_low"], table["ci_high"])[1:]
    assert f"95 % interval {low} to {high}" in strips[0]
    ((start, end),) = re.findall(r"M([0-9.]+) 6H([0-9.]+)\" stroke", strips[0])
    assert float(end) == 107  # the best interval ends the scale
    lowest = min(ev.random("ndcg@5").mean for ev in models.values())
    share = (table["ci_low"] - lowest) / (table["ci_high"] - lowest)
    assert float(start) == pytest.approx(5 + 102 * share, abs=0.06)
    assert "no interval" in strips[3]


def test_control_characters_are_escaped(models: dict[str, se.Evaluation], tmp_path: Path) -> None:
    named = {"a\u202eb": models["good"], "c\x07": models["poor"]}
    page = se.write_report(named, tmp_path / "r.html", "ndcg@5", title="\u202etitle")
    text = page.read_text(encoding="utf-8")
    assert not re.search("[\x00-\x08\u202a-\u202e]", text)
    assert "a\\u202eb" in text
    assert "c\\u0007" in text


def test_says_how_the_results_were_made(tmp_path: Path) -> None:
    clicks = se.datasets.synthetic(n_users=300, n_items=80, seed=1)
    holdout = se.split.random(clicks, seed=1)
    evs = {}
    for factors, name in ((2, "als2"), (16, "als16")):
        model = se.train_als(holdout.train, factors=factors, iterations=2)
        ev = se.evaluate_model(model, holdout, ["ndcg@5", "recall@5"], baselines=True)
        about = {"data": "clicks.csv", "split": "random", "model": {"factors": factors}, "seed": 1}
        evs[name] = se.Evaluation.load(ev.save(tmp_path / name, about=about))
    reader = read(se.write_report(evs, tmp_path / "r.html"))
    best = max(evs, key=lambda name: evs[name]["ndcg@5"])
    for expected in (
        f"Data clicks.csv, 300 users × 80 items, {holdout.validation.nnz:,} relevant pairs",
        "Split random Evaluated sparse_eval ",
        f"Parameters of {best} factors {best[3:]}, seed 1",
    ):
        assert expected in reader.text
    popular = evs[best].baselines["popularity"].summary().loc["ndcg@5"]
    beaten = [
        name
        for name, ev in evs.items()
        if ev.summary().loc["ndcg@5", "ci_high"] < popular["ci_low"]
    ]
    assert ("The baseline “popularity” beats" in reader.text) == bool(beaten)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((1, 1, 1), ["34 %", "33 %", "33 %"]),
        ((2, 0, 0), ["100 %", "0 %", "0 %"]),
        ((999, 0, 1), ["100 %", "0 %", "< 1 %"]),
        ((0, 0, 0), ["–", "–", "–"]),
    ],
)
def test_shares_add_to_100(parts: tuple[int, ...], expected: list[str]) -> None:
    assert format_shares(*parts) == expected
