"""Biases, cosines and distances as products: factors with more columns, or of length 1.

Every search then is one for the largest products, and its scores are exact by these definitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from ..core.arguments import check_choice
from ..core.arrays import as_array, describe
from ..errors import InvalidDataError
from .ranker import check_factors

if TYPE_CHECKING:
    from ..core.types import AnyArray, Floats

#: How a user and an item are compared.
Similarity: TypeAlias = Literal["dot", "cosine", "euclidean"]


def as_products(
    user_factors: AnyArray,
    item_factors: AnyArray,
    *,
    item_biases: object = None,
    user_biases: object = None,
    similarity: Similarity = "dot",
) -> tuple[AnyArray, AnyArray]:
    """Return factors whose products are the scores; see `sparse_eval.factor_model`."""
    check_choice("similarity", similarity, get_args(Similarity))
    if similarity == "dot" and item_biases is None and user_biases is None:
        return user_factors, item_factors  # as they are, which may be on disk
    users, items = (side.values for side in check_factors(user_factors, item_factors))
    columns = [(users, items)]
    if similarity == "cosine":
        columns = [(_normalized(users), _normalized(items))]
    elif similarity == "euclidean":
        # −‖u − v‖² = 2⟨u, v⟩ − ‖v‖² − ‖u‖²
        columns = [
            (2.0 * users.astype(np.float64), items),
            (np.ones(len(users)), -_squared_lengths(items, "item_factors")),
            (-_squared_lengths(users, "user_factors"), np.ones(len(items))),
        ]
    if item_biases is not None:
        biases = _checked_biases(item_biases, "item_biases", len(items))
        columns.append((np.ones(len(users), biases.dtype), biases))
    if user_biases is not None:
        biases = _checked_biases(user_biases, "user_biases", len(users))
        columns.append((biases, np.ones(len(items), biases.dtype)))
    sides = zip(*columns, strict=True)
    of_users, of_items = (np.column_stack(side) for side in sides)
    return of_users, of_items


def _checked_biases(biases: object, name: str, n: int) -> AnyArray:
    expected = f"a number for each of {n} rows of {name.replace('biases', 'factors')}"
    array = as_array(biases, name, expected)
    if array.shape != (n,) or array.dtype.kind not in "iuf" or array.dtype.itemsize > 8:
        raise InvalidDataError(f"{name} is {describe(array)}; expected {expected}", argument=name)
    single = array.dtype in (np.float16, np.float32)
    values: AnyArray = array.astype(np.float32 if single else np.float64)
    finite = np.isfinite(values)
    if not finite.all():
        row = int(finite.argmin())
        raise InvalidDataError(
            f"{name} holds {values[row]} in row {row}; expected finite numbers",
            argument=name,
            row=row,
        )
    return values


def _normalized(factors: AnyArray) -> Floats:
    """Return rows of length 1 in float64; rows of zeros stay.

    Powers of two are taken out first, exactly, so that no square overflows or vanishes.
    """
    largest = np.abs(factors).max(axis=1, initial=0.0).astype(np.float64)
    exponents = np.frexp(largest)[1]
    scaled = np.ldexp(factors.astype(np.float64), -exponents[:, None])
    lengths = np.sqrt(_sum_of_squares(scaled))
    return np.asarray(scaled / np.where(lengths > 0.0, lengths, 1.0)[:, None])


def _squared_lengths(factors: AnyArray, name: str) -> Floats:
    with np.errstate(over="ignore"):
        squares = _sum_of_squares(factors)
    if not np.isfinite(squares).all():
        row = int(np.isfinite(squares).argmin())
        raise InvalidDataError(
            f"{name}, row {row} is so long that its square overflows; scale the factors down",
            argument=name,
            row=row,
        )
    return squares


def _sum_of_squares(factors: AnyArray) -> Floats:
    """Return the sum of the squares of each row, accumulated in float64 in their order."""
    total = np.zeros(len(factors))
    with np.errstate(under="ignore"):  # which the caller's settings may raise
        for column in factors.T:
            total += column.astype(np.float64) ** 2
    return total
