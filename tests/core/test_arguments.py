"""Checks of single arguments: what they return and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from raising import raises

from sparse_eval.core.arguments import check_choice, check_fraction, check_number, check_whole
from sparse_eval.errors import InvalidDataError


@pytest.mark.parametrize("value", [3, np.int8(3), np.uint64(3)])
def test_whole_numbers_become_int(value: object) -> None:
    assert type(check_whole("k", value, 1, 3)) is int
    assert check_whole("k", value) == 3


@pytest.mark.parametrize(
    ("value", "limits"),
    [
        (True, ()),
        (1.0, ()),
        ("1", (0,)),
        (None, (0,)),
        (0, (1,)),
        (5, (1, 4)),
        (np.bool_(True), ()),
    ],
)
def test_refuses_what_is_no_whole_number_in_the_range(
    value: object, limits: tuple[int, ...]
) -> None:
    with raises(InvalidDataError, argument="k"):
        check_whole("k", value, *limits)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int16(2)])
def test_numbers_become_float(value: object) -> None:
    assert type(check_number("p", value, 2)) is float
    assert check_number("p", value, 1.5, open_end=True) == 2.0


@pytest.mark.parametrize(
    "value", [True, "2", None, 1.5, math.nan, math.inf, -math.inf, 10**400, np.float64("nan")]
)
def test_refuses_what_is_no_number_in_the_range(value: object) -> None:
    with raises(InvalidDataError, argument="p"):
        check_number("p", value, 2)


def test_an_open_end_is_refused() -> None:
    with raises(InvalidDataError, argument="p"):
        check_number("p", 2, 2, open_end=True)


def test_a_choice_is_one_of_a_few_words() -> None:
    assert check_choice("ties", "item", ("item", "average")) == "item"
    for value in ("items", None, np.array(["item"]), ["item"]):
        with raises(InvalidDataError, argument="ties"):
            check_choice("ties", value, ("item", "average"))


@pytest.mark.parametrize("value", [0.5, np.float32(0.5), np.float64(0.5)])
def test_fractions_become_float(value: object) -> None:
    assert type(check_fraction("share", value)) is float
    assert check_fraction("share", value) == 0.5


@pytest.mark.parametrize(
    "value", [0, 1, 0.0, 1.0, -0.5, 95, math.nan, math.inf, True, "0.5", None, 0.5j]
)
def test_refuses_what_is_no_fraction(value: object) -> None:
    with raises(InvalidDataError, argument="share"):
        check_fraction("share", value)
