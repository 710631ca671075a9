"""Intervals of numbers about all users together: one kind, however the users were cut."""

import jackknife
import numpy as np
import oracle
import pandas as pd
import pytest
from evaluations import (
    N_USERS,
    ONE_NUMBER,
    PROBLEM_ITEMS,
    TEXT,
    problem,
    shuffled,
    some,
    without_lists,
)
from scipy import stats

import sparse_eval as se
from sparse_eval.results.intervals import N_GROUPS


def evaluate(rows=slice(None), labels=None, **options):
    """Evaluate some users of the problem, each under its own label."""
    lists, gains, _ = problem()
    users = None if labels is None else np.array(labels, object)[rows].tolist()
    return se.evaluate(
        se.Rankings.from_positions(lists.to_positions()[rows]),
        se.Relevance.from_csr(gains[rows], users=users),
        ONE_NUMBER,
        **options,
    )


def plain(name):
    """Return a number as a function of users that plain Python computes, and who counts."""
    rankings, gains, _ = problem()
    positions = rankings.to_positions().tocsr()
    lists = [
        positions[row].indices[np.argsort(positions[row].data)].tolist() for row in range(N_USERS)
    ]
    relevance = [
        dict(zip(gains[row].indices.tolist(), gains[row].data.tolist(), strict=True))
        for row in range(N_USERS)
    ]
    counted = [row for row in range(N_USERS) if any(g > 0 for g in relevance[row].values())]

    def number(users):
        kept = [counted[user] for user in users]
        if name.startswith("recall"):
            hits = sum(len({*lists[row][:3]} & {*relevant(row)}) for row in kept)
            return hits / sum(min(len(relevant(row)), 10**9) for row in kept)
        formula = getattr(oracle, name.removesuffix("@3"))
        return formula([lists[r] for r in kept], [relevance[r] for r in kept], [], PROBLEM_ITEMS, 3)

    def relevant(row):
        return [item for item, gain in relevance[row].items() if gain > 0]

    return number, counted


@pytest.mark.parametrize(
    ("name", "labels"),
    [("coverage@3", None), ("gini@3", shuffled()), ("recall(average=micro)@3", TEXT)],
)
def test_intervals_are_those_of_a_plain_jackknife(name, labels):
    ev = evaluate(labels=labels)
    number, counted = plain(name)
    assert ev[name] == pytest.approx(number(range(len(counted))), rel=1e-12)
    groups = [jackknife.group_of(row if labels is None else labels[row]) for row in counted]
    expected = np.array(jackknife.replicates(number, groups))
    assert ev.replicates(name) == pytest.approx(expected, rel=1e-9)
    error = expected.std(ddof=1)
    # Around their own mean, which is not quite the number where groups are of unequal sizes.
    assert error == pytest.approx(jackknife.standard_error(number, groups), rel=0.01)
    row = ev.summary(0.9).loc[name]
    half = stats.t.ppf(0.95, N_GROUPS - 1) * error
    assert row["interval"] == "jackknife"
    assert row["ci_low"] == pytest.approx(ev[name] - half, rel=1e-9)
    assert row["ci_high"] == pytest.approx(ev[name] + half, rel=1e-9)


def test_comparisons_are_paired_whatever_the_order_of_the_users():
    gains = problem()[1]
    rng = np.random.default_rng(3)
    other_ids = rng.permuted(np.tile(np.arange(PROBLEM_ITEMS), (N_USERS, 1)), axis=1)[:, :5]

    def other(rows):
        relevance = se.Relevance.from_csr(gains[rows], users=[TEXT[row] for row in rows])
        lists = se.Rankings.from_topk(other_ids[rows], shape=(len(rows), PROBLEM_ITEMS))
        return se.evaluate(lists, relevance, ONE_NUMBER)

    ev = evaluate(labels=TEXT)
    expected = ev.compare(other(np.arange(N_USERS)), test="wilcoxon")
    found = ev.compare(other(rng.permutation(N_USERS)), test="wilcoxon")
    pd.testing.assert_frame_equal(found.table, expected.table, check_exact=True)
    row = found.table.set_index("metric").loc["coverage@3"]
    # Against the plain jackknife of the difference.
    number, counted = plain("coverage@3")

    def difference(users):
        recommended = {item for user in users for item in other_ids[counted[user]][:3]}
        return number(users) - len(recommended) / PROBLEM_ITEMS

    groups = [jackknife.group_of(TEXT[row]) for row in counted]
    error = np.std(jackknife.replicates(difference, groups), ddof=1)
    half = stats.t.ppf(0.975, N_GROUPS - 1) * error
    assert row["ci_high"] - row["ci_low"] == pytest.approx(2 * half, rel=1e-9)
    p = 2 * stats.t.sf(abs(row["difference"]) / error, N_GROUPS - 1)
    assert row["p"] == pytest.approx(p, rel=1e-6, abs=1e-12)


def test_merged_users_are_compared_with_labelled_ones():
    """Merged users with labels from 0 on are known as row numbers; labels say the same."""
    order = np.random.default_rng(1).permutation(N_USERS)
    labelled = evaluate(order, range(N_USERS))
    half = [evaluate(part, range(N_USERS)) for part in (slice(0, 100), slice(100, None))]
    merged = half[1].merge(half[0])
    assert merged.users is None
    for a, b in ((labelled, merged), (merged, labelled)):
        assert (a.compare(b).table["difference"] == 0).all()
    assert (merged.compare(evaluate()).table["difference"] == 0).all()


def test_too_few_users_have_no_interval():
    few = some(8)
    for ev in (few, without_lists(few), without_lists(few, per_user=False)):
        assert ev.replicates("coverage@2").shape == (0,)
        row = ev.summary().loc["coverage@2"]
        assert row["interval"] == "none"
        assert row[["ci_low", "ci_high"]].isna().all()
