"""Saved metrics of one's own, read by a process that has not registered them."""

import pickle

import numpy as np
import pytest
from evaluations import problem, same_everything, saved
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidMetricError
from sparse_eval.metrics import REGISTRY, Choice

OWN = [
    "own_hits@3",
    "own_pairs(kind=b)@2",
    "own_items@3",
    "own_lengths",
    "own_share(average=micro)@3",
]
NAMES = ["ndcg@3", *OWN, "coverage@3"]


def register():
    """Register a metric of each kind."""

    @se.register_metric("own_hits", "hits", higher_is_better=False)
    def own_hits(s):
        return np.asarray(s.hits, np.float64)

    kinds = Choice("kind", ("a", "b"), "which")

    @se.register_metric("own_pairs", "a number of each list", over="lists", options=[kinds])
    def own_pairs(lists, kind):
        return np.full(lists.n_users, 2.0 if kind == "b" else 1.0)

    @se.register_metric("own_items", "items in lists", over="lists", per_user=False)
    def own_items(lists):
        return float((lists.item_counts > 0).sum()) / 7

    # Blocks cannot be merged by what this one reads.
    @se.register_metric("own_lengths", "of lists", over="lists", per_user=False, cutoff="none")
    def own_lengths(lists):
        return float(np.diff(lists.indptr).mean()) if lists.n_users else np.nan

    average = Choice("average", ("macro", "micro"), "how users are averaged")

    @se.register_metric("own_share", "of hits", options=[average])
    def own_share(s, average):
        hits = np.asarray(s.hits, np.float64)
        return (hits, np.full(len(hits), 3.0)) if average == "micro" else hits / 3


def forget():
    for name in OWN:
        REGISTRY.pop(name.partition("@")[0].partition("(")[0], None)


@pytest.fixture(autouse=True)
def registered():
    register()
    yield
    forget()


def evaluate(rows=slice(None), names=NAMES, **options):
    lists, gains, _ = problem()
    users = [f"u{row:03}" for row in range(*rows.indices(gains.shape[0]))]
    return se.evaluate(
        se.Rankings.from_positions(lists.to_positions()[rows]),
        se.Relevance.from_csr(gains[rows], users=users),
        names,
        **options,
    )


def test_keeps_every_number(tmp_path):
    ev = evaluate()
    folder = ev.save(tmp_path / "a")
    registered = se.Evaluation.load(folder)
    same_everything(ev, registered)
    forget()
    found = se.Evaluation.load(folder)
    same_everything(registered, found)
    assert not found.higher_is_better("own_hits@3")
    with raises(InvalidMetricError, metric="own_hits"):
        found["own_hits@4"]
    # It is saved, pickled, compared and reported again.
    same_everything(found, pickle.loads(pickle.dumps(saved(found, tmp_path / "b"))))  # noqa: S301
    assert (found.compare(se.Evaluation.load(folder)).table["difference"] == 0).all()
    page = se.write_report({"one": found, "two": registered}, tmp_path / "r.html")
    assert "own items@3" in page.read_text(encoding="utf-8")


def test_values_of_users_are_merged_without_the_formula(tmp_path):
    names = ["own_hits@3", "own_pairs(kind=b)@2", "own_items@3", OWN[4]]
    parts = [evaluate(rows, names) for rows in (slice(0, 99), slice(99, None))]
    expected = parts[0].merge(parts[1])
    numbers = expected.mean()
    folders = [part.save(tmp_path / str(number)) for number, part in enumerate(parts)]
    forget()
    found = se.Evaluation.load(folders[1]).merge(se.Evaluation.load(folders[0]))
    for name in (names[0], names[1], names[3]):
        assert found[name] == numbers[name]
    for call in (lambda: found["own_items@3"], found.summary):
        with raises(InvalidMetricError):
            call()


def test_another_metric_of_the_same_name_does_not_change_it(tmp_path):
    ev = evaluate(names=["ndcg@3", "own_items@3", "own_hits@3"])
    numbers, folder = ev.mean(), ev.save(tmp_path / "a")
    forget()
    se.register_metric("own_items", "another", over="lists", per_user=False)(lambda lists: 0.5)

    # One number where there was one for each user.
    @se.register_metric("own_hits", "another", over="lists", per_user=False)
    def own_hits(lists):
        return 0.5

    found = se.Evaluation.load(folder)
    assert found.mean() == numbers
    assert found.is_per_user("own_hits@3")
    np.testing.assert_array_equal(found.replicates("own_items@3"), ev.replicates("own_items@3"))


def test_baselines_keep_numbers_of_their_own(tmp_path):
    names = ["ndcg@3", "own_items@3", "own_hits@3"]
    ev = evaluate(names=names)
    ev.baselines["other"] = evaluate(slice(0, 99), names)
    expected = ev.baselines["other"].mean()
    assert expected["own_items@3"] != ev["own_items@3"]
    folder = ev.save(tmp_path / "a")
    forget()
    found = se.Evaluation.load(folder)
    assert found.baselines["other"].mean() == expected
    row = found.baselines["other"].summary().loc["own_items@3"]
    assert row["interval"] == "none"  # its replicates are not saved
