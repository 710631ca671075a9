"""Checks of single arguments: what they return and what they refuse."""

import math

import numpy as np
import pytest
from raising import raises

from sparse_eval.core.arguments import check_choice, check_fraction, check_number, check_whole
from sparse_eval.errors import InvalidDataError


def test_numbers_become_those_of_python():
    for value in (3, np.int8(3), np.uint64(3)):
        assert type(check_whole("k", value, 1, 3)) is int
    for value in (2, 2.0, np.float32(2), np.int16(2)):
        assert type(check_number("p", value, 2)) is float
    for value in (0.5, np.float32(0.5)):
        assert type(check_fraction("p", value)) is float
    assert check_number("p", 2, 1.5, open_end=True) == 2.0
    assert check_choice("p", "item", ("item", "average")) == "item"


@pytest.mark.parametrize(
    ("check", "values", "limits"),
    [
        (check_whole, [True, 1.0, "1", None, -1, 5, np.bool_(True)], (0, 4)),
        (check_number, [True, "2", None, 1.5, math.nan, math.inf, -math.inf, 10**400], (2,)),
        (check_fraction, [0, 1, 1.0, -0.5, 95, math.nan, math.inf, True, "0.5", None, 0.5j], ()),
        (check_choice, ["items", None, np.array(["item"]), ["item"]], (("item", "average"),)),
    ],
)
def test_refuses_other_values(check, values, limits):
    for value in values:
        with raises(InvalidDataError, argument="p"):
            check("p", value, *limits)
    with raises(InvalidDataError, argument="p"):
        check_number("p", 2, 2, open_end=True)
