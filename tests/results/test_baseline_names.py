"""Names of baselines: accepted names survive saving, and any other name raises an error."""

import copy
import pickle
import tempfile
from pathlib import Path

import numpy as np
import pytest
from evaluations import same_everything
from hypothesis import example, given, settings
from hypothesis import strategies as st
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

METRICS = ["ndcg@2", "coverage@2", "recall(average=micro)@2"]
HELD = csr_matrix([[1.0, 0, 1], [0, 1, 0], [1, 0, 0]])
REFUSED = ["", " ", "a\tb", "a\nb", "a\x00b", "a\u202eb", "\ud800", 3, None]
REFUSED += ["mean", "ci_low", "interval", "random", "lift", "n_users", "candidates"]  # columns


def evaluate(seed):
    ids = np.random.default_rng(seed).permuted(np.tile(np.arange(3), (3, 1)), axis=1)
    return se.evaluate(se.Rankings.from_topk(ids[:, :2], shape=(3, 3)), HELD, METRICS)


EV, *OTHERS = (evaluate(seed) for seed in range(4))


@settings(max_examples=20)
@given(st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1), unique=True))
@example(["als/old", "a\\b", "../up"])
@example(["ALS", "als", "Als"])
@example(["1", "2", "totals"])
@example(["x" * 999, "x" * 998])
@example(["con", "aux.", "a:b"])
@example(["na\u00efve", "nai\u0308ve"])  # composed, and decomposed
def test_names_that_are_accepted_come_back(names):
    ev = EV.merge()
    ev.baselines = dict(zip(names, OTHERS, strict=False))
    with tempfile.TemporaryDirectory() as folder:
        found = se.Evaluation.load(ev.save(Path(folder) / "a"))
    assert list(found.baselines) == names[: len(OTHERS)]
    same_everything(ev, found)
    assert found.to_dict() == ev.to_dict()


@pytest.mark.parametrize("name", REFUSED, ids=ascii)
def test_names_are_checked_when_they_are_given(name):
    ev, other = EV.merge(), OTHERS[0]
    for give in (
        lambda: ev.baselines.__setitem__(name, other),
        lambda: ev.baselines.update({name: other}),
        lambda: setattr(ev, "baselines", {name: other}),
    ):
        with raises(InvalidDataError):
            give()
    assert ev.baselines == {}


def test_baselines_are_copied_as_a_dict_is_and_kept_if_a_name_is_wrong():
    ev, other = EV.merge(), OTHERS[0]
    ev.baselines = {"one": other}
    copied = copy.copy(ev.baselines)
    copied["two"] = other
    with raises(InvalidDataError):
        ev.baselines = {"three": other, "a\tb": other}
    assert list(ev.baselines) == ["one"]
    ev.baselines |= {"three": other}
    assert list(pickle.loads(pickle.dumps(ev)).baselines) == ["one", "three"]  # noqa: S301
