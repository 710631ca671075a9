"""Saved metrics of one's own, read by a process that has not registered them."""

import pickle

import numpy as np
import pytest
from evaluations import N_USERS, problem, same_everything, saved
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidMetricError
from sparse_eval.metrics import REGISTRY, Choice

#: With one formula that reads more of the lists than blocks have: own_lengths.
OWN = [
    "own_hits@3",
    "own_pairs(kind=b)@2",
    "own_items@3",
    "own_lengths",
    "own_share(average=micro)@3",
]


@pytest.fixture(autouse=True)
def registered():
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

    @se.register_metric("own_lengths", "of lists", over="lists", per_user=False, cutoff="none")
    def own_lengths(lists):
        return float(np.diff(lists.indptr).mean()) if lists.n_users else np.nan

    average = Choice("average", ("macro", "micro"), "how users are averaged")

    @se.register_metric("own_share", "of hits", options=[average])
    def own_share(s, average):
        hits = np.asarray(s.hits, np.float64)
        return (hits, np.full(len(hits), 3.0)) if average == "micro" else hits / 3


def forget():
    for name in [name for name in REGISTRY if name.startswith("own_")]:
        del REGISTRY[name]


def evaluate(a=0, b=N_USERS, names=("ndcg@3", *OWN)):
    lists, gains, _ = problem()
    part = se.Rankings.from_positions(lists.to_positions()[a:b])
    users = [f"u{row:03}" for row in range(a, b)]
    return se.evaluate(part, se.Relevance.from_csr(gains[a:b], users=users), names)


@pytest.mark.long
def test_keeps_every_number(tmp_path):
    folder = evaluate().save(tmp_path / "a")
    registered = se.Evaluation.load(folder)
    same_everything(evaluate(), registered)
    forget()
    found = se.Evaluation.load(folder)
    same_everything(registered, found)
    with raises(InvalidMetricError, metric="own_hits"):
        found["own_hits@4"]
    # It is saved, pickled, compared and reported again.
    same_everything(found, pickle.loads(pickle.dumps(saved(found, tmp_path / "b"))))  # noqa: S301
    assert (
        se.compare({"a": found, "b": se.Evaluation.load(folder)}).table["difference"] == 0
    ).all()
    page = se.write_report({"one": found, "two": registered}, tmp_path / "r.html")
    assert "own items@3" in page.read_text(encoding="utf-8")


def test_values_of_users_are_merged_without_the_formula(tmp_path):
    names = [name for name in OWN if name != "own_lengths"]
    parts = evaluate(0, 99, names), evaluate(99, N_USERS, names)
    merged = parts[0].merge(parts[1])
    numbers = merged.mean()
    folders = [part.save(tmp_path / str(number)) for number, part in enumerate(parts)]
    forget()
    found = se.Evaluation.load(folders[1]).merge(se.Evaluation.load(folders[0]))
    for name in names:
        if merged._part.traits_of(name).per_user:
            assert found[name] == numbers[name]
        else:
            with raises(InvalidMetricError):
                found[name]
    with raises(InvalidMetricError):
        found.summary()


def test_another_metric_of_the_same_name_does_not_change_it(tmp_path):
    ev = evaluate(names=["own_items@3", "own_hits@3"])
    folder = ev.save(tmp_path / "a")
    forget()
    for name in ("own_items", "own_hits"):  # the second had a value for each user
        se.register_metric(name, "another", over="lists", per_user=False)(lambda lists: 0.5)
    same_everything(se.Evaluation.load(folder), ev)


def test_baselines_keep_numbers_of_their_own(tmp_path):
    ev = evaluate()
    ev.baselines["other"] = evaluate(0, 99)
    expected = ev.baselines["other"].mean()
    assert expected["own_items@3"] != ev["own_items@3"]
    folder = ev.save(tmp_path / "a")
    forget()
    found = se.Evaluation.load(folder).baselines["other"]
    assert found.mean() == expected
    with raises(InvalidMetricError):  # its replicates are not saved
        found.summary()
