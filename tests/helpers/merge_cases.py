"""Metrics and comparisons for tests that one evaluation is another, whatever it was merged from."""

import numpy as np
import pandas as pd

from sparse_eval.inputs.item_data import item_inputs
from sparse_eval.metrics import REGISTRY

N_ITEMS = 12

#: What they divide by, the largest gain of all users, is not that of a block.
LARGEST = ["rbp(gain=linear)@3", "err@3"]


def every_metric(train=None, item_data=None):
    """Return every metric that the inputs allow, with a cut-off where it may have one."""
    inputs = {
        *({} if item_data is None else item_inputs(item_data)),
        *([] if train is None else ["train"]),
    }
    names = [
        "err(max=4)@3",
        "rbp(gain=linear)@3",
        "recall(average=micro)@3",
        "ndcg(gain=exp)@5",
        "coverage@2",
    ]
    if "train" in inputs:
        names += ["psp(average=macro)@2", "recall(gamma=0.5,weights=snips)@3"]
    if "propensity" in inputs:
        names.append("psndcg(propensity=given)@3")
    if "item_vectors" in inputs:
        names.append("diversity(similarity=vectors)@3")
    return names + [
        one.name + ("" if one.cutoff == "none" else "@3")
        for one in REGISTRY.values()
        if needs_of(one) <= inputs
    ]


def needs_of(metric):
    """Return the inputs that a metric takes with its default options."""
    chosen = {option.needs.get(option.default, "") for option in metric.options}
    return {*metric.needs, *chosen} - {""}


def same_numbers(a, b):
    """Check that means, deviations, intervals and counts are the same to the last bit."""
    assert a.keys() == b.keys()
    one, other = a.summary(), b.summary()
    columns = ["mean", "std", "ci_low", "ci_high", "interval", "n_users", "n_skipped"]
    pd.testing.assert_frame_equal(one[columns], other[columns], check_exact=True)
    assert (a.n_users, a._part.n_users) == (b.n_users, b._part.n_users)
    assert a._part.n_without_list == b._part.n_without_list


def same_bits(a, b):
    """Check that everything that both have is the same to the last bit."""
    pd.testing.assert_frame_equal(a.per_user, b.per_user, check_exact=True, check_index_type=False)
    same_numbers(a, b)
    assert np.array_equal(a._values.fingerprints, b._values.fingerprints)
    assert np.array_equal(a._values.counted, b._values.counted)


def same_random(a, b):
    """Check that the random baselines are the same to the last bit, as far as both have them."""
    columns = ["random", "random_se", "lift"]
    one, other = a.summary()[columns], b.summary()[columns]
    both = one["random"].notna() & other["random"].notna()
    pd.testing.assert_frame_equal(one[both], other[both], check_exact=True)
