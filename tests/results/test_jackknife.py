"""Intervals of numbers about all users together: one kind, however the users were cut.

They are compared with the delete-a-group jackknife as it is published, of numbers that plain Python
computes.

F. M. T. A. Busing, E. Meijer and R. van der Leeden, "Delete-m Jackknife for Unequal m", Statistics
and Computing 9, 1999, pp. 3-8. doi:10.1023/A:1008800423698
"""

import math

import numpy as np
import oracle
import pandas as pd
import pytest
from evaluations import N_USERS, PROBLEM_ITEMS, TEXT, problem, shuffled, some, without_values
from scipy import stats

import sparse_eval as se

N_GROUPS = 20
WORD = 2**64
NAMES = ["coverage@3", "gini@3", "entropy@3", "personalization@3", "recall(average=micro)@3"]


def group_of(label):
    """Return the group of a user: by splitmix64 of a number, by pandas' hash of text."""
    if isinstance(label, str):
        return int(pd.util.hash_array(pd.array([label], dtype=object).to_numpy())[0]) % N_GROUPS
    state = (label + 0x9E3779B97F4A7C15) % WORD
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % WORD
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) % WORD
    return (state ^ (state >> 31)) % N_GROUPS


def jackknife(number, labels):
    """Return a replicate of a function of users for each group of them, and its standard error."""
    groups, users = np.array(list(map(group_of, labels))), np.arange(len(labels))
    everybody = number(users)
    without = np.array([number(users[groups != group]) for group in range(N_GROUPS)])
    h = len(users) / np.bincount(groups)
    center = N_GROUPS * everybody - ((1 - 1 / h) * without).sum()
    apart = h * everybody - (h - 1) * without - center
    error = math.sqrt((apart**2 / (h - 1)).sum() / N_GROUPS)
    return everybody + apart * np.sqrt((N_GROUPS - 1) / (N_GROUPS * (h - 1))), error


def evaluate(rows=slice(None), labels=None):
    """Evaluate some users of the problem, each under its own label."""
    lists, gains, _ = problem()
    users = None if labels is None else np.array(labels, object)[rows].tolist()
    return se.evaluate(
        se.Rankings.from_positions(lists.to_positions()[rows]),
        se.Relevance.from_csr(gains[rows], users=users),
        NAMES,
    )


def plain(name):
    """Return a number as a function of users that plain Python computes, and who counts."""
    rankings, gains, _ = problem()
    ranks = [dict(zip(row.indices, row.data, strict=True)) for row in rankings.to_positions()]
    lists = [sorted(of_user, key=of_user.get) for of_user in ranks]
    relevance = [dict(zip(row.indices, row.data, strict=True)) for row in gains]
    relevant = [{item for item, gain in row.items() if gain > 0} for row in relevance]
    counted = [row for row in range(N_USERS) if relevant[row]]

    def number(users):
        kept = [counted[user] for user in users]
        if name.startswith("recall"):
            hits = sum(len({*lists[row][:3]} & relevant[row]) for row in kept)
            return hits / sum(len(relevant[row]) for row in kept)
        formula = getattr(oracle, name.removesuffix("@3"))
        return formula([lists[r] for r in kept], [relevance[r] for r in kept], [], PROBLEM_ITEMS, 3)

    return number, counted


@pytest.mark.parametrize(
    ("name", "labels"),
    [("coverage@3", range(N_USERS)), ("gini@3", shuffled()), ("recall(average=micro)@3", TEXT)],
)
def test_intervals_are_those_of_a_plain_jackknife(name, labels):
    ev = evaluate(labels=labels if labels != range(N_USERS) else None)
    number, counted = plain(name)
    assert ev[name] == pytest.approx(number(range(len(counted))), rel=1e-12)
    expected, error = jackknife(number, [labels[row] for row in counted])
    assert ev._part.replicates(ev._part.row_of(name)) == pytest.approx(expected, rel=1e-9)
    # Around their own mean, which is not quite the number where groups are of unequal sizes.
    assert expected.std(ddof=1) == pytest.approx(error, rel=0.01)
    row = ev.summary(0.9).loc[name]
    half = stats.t.ppf(0.95, N_GROUPS - 1) * expected.std(ddof=1)
    assert row["interval"] == "jackknife"
    ends = row[["ci_low", "ci_high"]].tolist()
    assert ends == pytest.approx([ev[name] - half, ev[name] + half], rel=1e-9)


def test_comparisons_are_paired_whatever_the_order_of_the_users():
    gains = problem()[1]
    rng = np.random.default_rng(3)
    other_ids = rng.permuted(np.tile(np.arange(PROBLEM_ITEMS), (N_USERS, 1)), axis=1)[:, :5]

    def other(rows):
        relevance = se.Relevance.from_csr(gains[rows], users=[TEXT[row] for row in rows])
        lists = se.Rankings.from_topk(other_ids[rows], shape=(len(rows), PROBLEM_ITEMS))
        return se.evaluate(lists, relevance, NAMES)

    ev = evaluate(labels=TEXT)
    expected, found = (
        se.compare({"a": ev, "b": other(rows)}, test="wilcoxon").table
        for rows in (np.arange(N_USERS), rng.permutation(N_USERS))
    )
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    # Against the plain jackknife of the difference.
    number, counted = plain("coverage@3")

    def difference(users):
        recommended = {item for user in users for item in other_ids[counted[user]][:3]}
        return number(users) - len(recommended) / PROBLEM_ITEMS

    error = jackknife(difference, [TEXT[row] for row in counted])[0].std(ddof=1)
    row = found.set_index("metric").loc["coverage@3"]
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
    assert merged._values.labels is None
    for a, b in ((labelled, merged), (merged, labelled), (merged, evaluate())):
        assert (se.compare({"a": a, "b": b}).table["difference"] == 0).all()


def test_too_few_users_have_no_interval():
    few = some(8)
    for ev in (few, without_values(few)):
        assert ev._part.replicates(ev._part.row_of("coverage@2")).shape == (0,)
        row = ev.summary().loc["coverage@2"]
        assert row["interval"] == "none"
        assert row[["ci_low", "ci_high"]].isna().all()
