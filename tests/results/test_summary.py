"""The table that people read, what it counts, and how many times better than random metrics are."""

import math
import re
import warnings

import numpy as np
import pytest
from evaluations import in_memory, of_model, saved, some
from exact import exact_model
from scipy.sparse import csr_matrix

import sparse_eval as se


def rows_of(text):
    """Return the cells of each metric, between two spaces or more."""
    table = text.partition("\n\n")[0].splitlines()
    return {line.split()[0]: re.split(r"  +", line.strip()) for line in (table[0], *table[2:])}


def test_shows_means_intervals_and_baselines():
    ev = of_model()
    ev.baselines["<script>"] = ev
    assert "<script>" not in ev._repr_html_()
    assert "&lt;script&gt;" in ev._repr_html_()
    del ev.baselines["<script>"]
    rows = rows_of(str(ev))
    assert rows["metric"] == ["metric", "mean", "95 % interval", "random", "popularity"]
    for name, row in ev.summary().iterrows():
        cells = rows[str(name)]
        assert (cells[2] == "none") == (row["interval"] == "none")
        ends = cells[2].split(" to ") if cells[2] != "none" else ["nan", "nan"]
        expected = row[["mean", "ci_low", "ci_high", "random", "popularity"]].astype(float)
        for text, value in zip([cells[1], *ends, *cells[3:]], expected, strict=True):
            decimals = len(text.partition(".")[2])
            np.testing.assert_allclose(float(text), value, atol=0.5001 * 10.0**-decimals)
    assert list(rows) == ["metric", *ev.keys()]


def test_fits_into_80_columns():
    clicks = se.datasets.synthetic(n_users=300, n_items=400, seed=1)
    holdout = se.split.random(clicks, seed=1)
    model = exact_model(holdout.train)
    usual = ["ndcg@{5,10,20}", "precision@{5,10,20}", "hit_rate@{5,10,20}", "ndcg(gain=exp)@100"]
    ev = se.evaluate_model(model, holdout, usual, baselines=True)
    lines = str(ev).splitlines()
    assert max(map(len, lines)) <= 80
    points = {line.index(".") for line in lines[2 : 2 + len(ev.keys())]}
    assert len(points) == 1  # aligned
    assert list(rows_of(str(ev))) == ["metric", *ev.keys()]  # all of them
    assert ev._repr_html_().count("<tr>") == 1 + len(ev.keys())


def test_shows_what_is_drawn_only_once_it_is_known(tmp_path):
    ev = in_memory()
    before = str(ev)
    assert len({len(line) for line in before.splitlines()[2 : 2 + len(ev.keys())]}) == 1
    assert ev._drawn is None
    drawn = ev.summary()["random_se"] != 0
    for text, unknown in ((before, drawn), (str(ev), ev.summary()["random"].isna())):
        first, _, *rows = text.splitlines()[: 2 + len(ev.keys())]
        place = first.index("random")
        assert [not row[place - 2 : place + 6].strip() for row in rows] == unknown.tolist()
    assert str(saved(ev, tmp_path / "a")) == str(ev)
    # What was not kept is not read again.
    blocks = some(keep="totals", memory=1 << 24)
    assert "random" not in rows_of(str(blocks))["metric"]
    blocks.summary()
    assert "random" in rows_of(str(blocks))["metric"]


def test_says_who_was_evaluated():
    lists = [[0, 1], [1, 2], [2, 0], [0, 2]]
    gains = csr_matrix([[1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 0, 0]])
    train = csr_matrix([[0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 1, 0]])
    ev = se.evaluate(lists, gains, "mrr@2", train=train)
    who = str(ev).splitlines()[4]
    assert who == "means over 3 users, 1 left out (nothing relevant), 1 cold (not in train)"
    assert who in ev._repr_html_()
    assert who == ev.to_markdown().splitlines()[4]
    other = se.evaluate(lists, gains, "mrr", convention="trec_eval", train=train)
    assert "1 left out (as trec_eval does)" in str(other)


def test_counts_the_users_of_a_metric_where_they_differ():
    lists = se.Rankings.from_topk([[0, 1, 2], [-1, -1, -1]])
    ev = se.evaluate(lists, csr_matrix([[1, 0, 2], [0, 1, 0]]), ["fcp@3", "mrr@3"])
    rows = rows_of(str(ev))
    assert rows["metric"][-1] == "users"
    assert (rows["fcp@3"][-1], rows["mrr@3"][-1]) == ("1", "2")
    assert ev.summary()["n_skipped"].tolist() == [1, 0]


# What the users have in train.


@pytest.mark.parametrize("options", [{}, {"keep": "totals", "memory": 1 << 24}])
def test_counts_what_users_have_in_train(options, tmp_path):
    rng = np.random.default_rng(0)
    ids = rng.permuted(np.tile(np.arange(30), (700, 1)), axis=1)[:, :5]
    gains = rng.integers(0, 3, (700, 30)) * (rng.random((700, 30)) < 0.1)
    seen = rng.random((700, 30)) < 0.1
    seen[rng.random(700) < 0.3] = False
    used = seen & (rng.random(seen.shape) < 0.7)  # the others are explicit zeros
    expected = (
        (~used.any(axis=1) & gains.any(axis=1)).sum(),
        ((gains > 0) & seen).sum(),
        np.take_along_axis(seen, ids, axis=1).sum(),
    )

    def evaluate(a, b):
        lists = se.Rankings.from_topk(ids[a:b], shape=(b - a, 30))
        relevance = se.Relevance.from_csr(csr_matrix(gains[a:b]), users=range(a, b))
        train = csr_matrix((used[seen] * 1.0, np.nonzero(seen)), seen.shape)[a:b]
        return se.evaluate(lists, relevance, "mrr@5", train=train, **options)

    merged = evaluate(333, 700).merge(evaluate(0, 333))
    for ev in (evaluate(0, 700), merged, saved(merged, tmp_path / "a")):
        found = ev.to_dict()
        counts = ("n_cold", "n_relevant_seen", "n_listed_seen")
        assert tuple(found[name] for name in counts) == expected
    assert some().to_dict()["n_cold"] is None


# Lift.


def test_lift_says_how_many_times_better_than_random():
    lists = se.Rankings.from_topk([[0, 1, 2, 3], [0, 1, 2, 3]])
    names = ["recall@2", "mean_rank", "percentile_rank", "utility@2"]
    summary = se.evaluate(lists, csr_matrix(np.eye(2, 4)), names).summary()
    expected = [1 / 0.5, 2.5 / 1.5, 0.5 / (1 / 6), math.nan]  # the last can be negative
    assert summary["lift"].tolist() == pytest.approx(expected, nan_ok=True)
    assert summary["random"].notna().all()
    first = se.evaluate(lists, csr_matrix([[1, 0, 0, 0]] * 2), "percentile_rank")
    assert math.isnan(first.summary().loc["percentile_rank", "lift"])


FEW = "too few users for the intervals of "


@pytest.mark.parametrize(
    ("n_users", "n_hits", "n_first", "noted"),
    [
        (9, 9, 0, "mrr@2, ndcg@2, hit_rate@2"),
        (10, 10, 0, ""),
        (40, 0, 0, "mrr@2, ndcg@2, hit_rate@2"),
        (40, 10, 5, "mrr@2, ndcg@2"),  # as 9 and 9.5 users with equal values
        (300, 10, 0, ""),
        (1, 1, 0, ""),  # no interval
    ],
)
def test_warns_of_means_that_rest_on_few_users(n_users, n_hits, n_first, noted, tmp_path):
    ids = np.tile([1, 2], (n_users, 1))  # without the relevant item, with it at rank 2, or at 1
    ids[:n_hits] = [1, 0]
    ids[:n_first] = [0, 1]
    held_out = csr_matrix(np.eye(3)[np.zeros(n_users, int)])
    names = ["mrr@2", "ndcg@2", "hit_rate@2", "coverage@2"]
    ev = se.evaluate(se.Rankings.from_topk(ids), held_out, names)
    for one in (ev, saved(ev, tmp_path / "a")):  # saving reads no interval and does not warn
        text = " ".join(str(one).split())
        assert (FEW + noted + ":" in text) if noted else (FEW not in text)
        assert (FEW in one._repr_html_()) == (FEW in one.to_markdown()) == bool(noted)
        for read in (one.summary, one.to_dict):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                read()
            few = [str(found.message) for found in caught if FEW in str(found.message)]
            assert len(few) == bool(noted)
            assert all(message.startswith(FEW + noted + ":") for message in few)


def test_exports_have_the_printed_columns():
    ev = of_model()
    ev.baselines["a_b"] = ev
    summary, frame = ev.summary(), ev.to_frame()
    assert frame.columns.tolist() == ["mean", "ci_low", "ci_high", "random", *ev.baselines]
    assert frame.equals(summary[frame.columns])
    text = ev.to_latex()
    body = text.partition("\\midrule\n")[2].partition("\\bottomrule")[0]
    cells = [re.split(r" *& *", line.strip(" \\")) for line in body.splitlines()]
    plain = rows_of(str(ev))
    names = [row[0].replace("\\_", "_") for row in cells]
    assert [[name, *row[1:]] for name, row in zip(names, cells, strict=True)] == list(
        plain.values()
    )[1:]
    assert "95 \\% interval" in text
    assert "a\\_b" in text
    assert "\\hline" not in text
