"""Users known by labels that are neither all text nor all whole numbers."""

import numpy as np
import pandas as pd
import pytest
from evaluations import some


@pytest.mark.parametrize("kind", [np.int64, object, "Int64"])
def test_whole_numbers_of_any_type_are_merged(kind):
    ends = [-(2**63), 2**63 - 1, 0, -5]
    other = some(3, labels=np.array([1, 2, 3], np.uint8))
    found = some(4, labels=pd.Index(ends, dtype=kind)).merge(other)
    assert found.per_user.index.tolist() == sorted([*ends, 1, 2, 3])
