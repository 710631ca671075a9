"""A case that the tests of retrieval share."""

from __future__ import annotations

import numpy as np
import pytest
from retrieval_cases import (
    Case,
    make_case,
    make_factors,
)


@pytest.fixture(scope="module")
def plain() -> Case:
    rng = np.random.default_rng(9)
    users, items = make_factors(rng, "whole", (9, 40, 6))
    return make_case(rng, users, items, 7)
