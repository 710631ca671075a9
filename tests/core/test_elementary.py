"""Elementary functions are the floats next to the true values, on every processor."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparse_eval.core import elementary

LOG_2 = Decimal("0.693147180559945309417232121458176568075500134360255254120680009")


def one(x, name, other=None):
    """Return the true value, rounded once."""
    with localcontext(prec=60):
        x = Decimal(x)
        if name == "power":
            return float((x.ln() * Decimal(other)).exp()) if x else float(other == 0)
        true = {
            "log": lambda: x.ln(),
            "log2": lambda: x.ln() / LOG_2,
            "log1p": lambda: (1 + x).ln(),
            "exp": lambda: x.exp(),
            "expm1": lambda: x.exp() - 1,
            "exp2m1": lambda: 2**x - 1,
        }
        return float(true[name]())


#: The true values at ±2^-52 are nearer to the middle between two floats than 32 digits can tell.
LEAST = 1e-15

POSITIVE = st.floats(1e-300, 1e300)
ARGUMENTS = {
    "log": POSITIVE,
    "log2": POSITIVE | st.integers(1, 2**40).map(float),
    "log1p": st.floats(-0.999, 1e15).filter(lambda x: abs(x) > LEAST or x == 0),
    "exp": st.floats(-700, 700),
    "expm1": st.floats(-700, 700).filter(lambda x: abs(x) > LEAST or x == 0),
    "exp2m1": st.floats(-900, 900).filter(lambda x: abs(x) > LEAST or x == 0),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_functions_are_correctly_rounded(name):
    @given(st.lists(ARGUMENTS[name], min_size=1, max_size=30))
    def check(values):
        found = getattr(elementary, name)(values)
        np.testing.assert_array_equal(found, [one(x, name) for x in values])

    check()


@given(st.floats(0, 1e10), st.floats(-20, 20))
def test_powers_are_correctly_rounded(base, exponent):
    if base > 1e-10 or (base == 0 and exponent >= 0):
        assert elementary.power(base, exponent) == one(base, "power", exponent)


def test_whole_powers_of_2_are_exact():
    whole = np.arange(-50, 1000)
    exact = [2**n for n in whole.tolist()]
    assert elementary.power(2.0, whole).tolist() == [float(n) for n in exact]
    assert elementary.log2(np.ldexp(1.0, whole)).tolist() == whole.tolist()
    less_1 = [float(n - 1) for n in exact]
    assert elementary.exp2m1(whole).tolist() == less_1
    assert elementary.exp2m1(np.append(whole, 0.5))[:-1].tolist() == less_1  # by another way


@pytest.mark.filterwarnings("error")
def test_ends_of_the_ranges_and_long_arrays():
    with np.errstate(all="raise"):
        assert np.array_equal(elementary.log([0, np.inf]), [-np.inf, np.inf])
        assert np.isnan(elementary.log2([-1, np.nan])).all()
        assert np.array_equal(
            elementary.exp([-np.inf, -1000, 0, 1000, np.inf]), [0, 0, 1, np.inf, np.inf]
        )
        assert np.array_equal(elementary.expm1([-np.inf, 0, np.inf]), [-1, 0, np.inf])
        assert elementary.exp2m1(2000.5) == np.inf
        assert elementary.log1p(-1.0) == -np.inf
        assert elementary.power(0.0, [0, 2]).tolist() == [1, 0]
    table = np.random.default_rng(0).integers(1, 2**50, (3, 9000)) / 2.0**20
    rows = [elementary.log(row) for row in table]
    np.testing.assert_array_equal(elementary.log(table), rows)
    assert elementary.log(np.empty((2, 0))).shape == (2, 0)
