"""What an evaluation has, what it lacks where lists or values were not kept, what it writes."""

import json
import re

import pandas as pd
import pytest
from evaluations import MIXED, N_USERS, problem, some, without_values
from exact import exact_model
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError
from sparse_eval.results.evaluation import _INSTEAD
from sparse_eval.results.record import SCHEMA


@pytest.fixture(scope="module")
def halves():
    """The same users, as a whole and merged."""
    lists, gains, _ = problem()

    def evaluate(a, b, users):
        part = se.Rankings.from_positions(lists.to_positions()[a:b])
        return se.evaluate(part, se.Relevance.from_csr(gains[a:b], users=users), MIXED)

    merged = evaluate(150, N_USERS, range(150, N_USERS)).merge(evaluate(0, 150, range(150)))
    return evaluate(0, N_USERS, None), merged


def test_what_needs_lists_or_values_of_users_says_so(halves):
    ev, merged = halves
    without = without_values(ev)
    assert without.mean() == ev.mean()
    for call in (
        lambda: merged.explain(0),
        lambda: merged.by(["a"] * N_USERS),
        merged.precision_recall,
        lambda: merged.rankings,
        lambda: without.values("ndcg@3"),
        lambda: without.per_user,
        lambda: se.compare({"a": without, "b": ev}),
        lambda: se.compare({"a": ev, "b": without}),
    ):
        with raises(InvalidDataError):
            call()
    assert merged.summary()[["random", "random_se", "lift"]].isna().all(axis=None)


def test_numbers_are_asked_for_by_any_spelling(halves):
    ev = halves[0]
    assert (
        ev["recall(average=macro)@2"]
        == ev[" Recall@2 "]
        == ev[ev.request.metrics[1]]
        == ev["recall@2"]
    )
    for call, metric in (
        (ev.values, "coverage@2"),
        *((call, "map") for call in (ev.values, ev.__getitem__)),
    ):
        with raises(InvalidMetricError, metric=metric):
            call(metric)
    with raises(InvalidDataError, argument="level"):
        ev.summary(2)


def test_former_attributes_show_what_to_use():
    ev = some()
    for name, instead in _INSTEAD.items():
        with pytest.raises(AttributeError, match=re.escape(f"{name!r}; use {instead}")):
            getattr(ev, name)
    assert not hasattr(ev, "nothing")


def test_shows_the_same_whatever_was_kept(halves):
    ev, merged = halves
    found = merged.to_dict()
    assert found == json.loads(json.dumps(found, allow_nan=False))
    counts = [found[name] for name in ("n_users", "n_skipped", "schema")]
    assert counts == [ev.n_users, ev.to_dict()["n_skipped"], SCHEMA]
    assert {name: row["mean"] for name, row in found["metrics"].items()} == ev.mean()
    pd.testing.assert_frame_equal(merged.per_user, ev.per_user, check_exact=True)
    without = without_values(ev)
    assert without.to_dict() == found
    assert without._repr_html_() == merged._repr_html_()
    assert str(without) == str(merged)
    assert repr(merged) == repr(ev)


def test_nothing_can_be_changed_through_what_it_returns():
    ev = some()
    ev.keys().append("x")
    ev.mean()["x"] = 0.0
    ev.about["x"] = 1
    frame = ev.per_user
    frame.iloc[:] = 7.0
    assert ev.keys() == list(ev.mean()) == MIXED
    assert not (ev.per_user == 7).any(axis=None)
    assert ev.about == {}


def test_inputs_are_remembered():
    clicks = se.datasets.synthetic(n_users=300, n_items=80, seed=1)
    holdout = se.split.random(clicks, seed=1)
    ev = se.evaluate_model(exact_model(holdout.train), holdout, "recall@5")
    inputs = ev._record["inputs"]
    assert list(inputs) == ["rankings", "relevance", "train"]
    assert inputs["train"]["shape"] == [300, 80]
    assert inputs["train"]["entries"] == holdout.train.nnz
