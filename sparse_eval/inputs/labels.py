"""Labels of the rows and columns of a matrix: those given, or those that it knows itself."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any

from ..core.arrays import as_array
from ..core.labelled import LabelledMatrix, labels_of
from ..core.mistaken import describe, is_frame
from ..errors import InvalidDataError

if TYPE_CHECKING:
    from ..core.types import Labels


def matrix_labels(
    matrix: object, shape: tuple[int, int], users: Any, items: Any
) -> tuple[Labels | None, Labels | None]:
    """Return the labels of rows and columns: those given, or else those of a `LabelledMatrix`.

    Raises
    ------
    InvalidDataError
        If labels are missing, repeated or cannot be hashed, or their number is another.
    """
    own = labels_of(matrix)
    return (
        own[0] if users is None else axis_labels(users, shape[0], "users"),
        own[1] if items is None else axis_labels(items, shape[1], "items"),
    )


def check_part(train: object) -> None:
    """Raise `InvalidDataError` if the validation part of a holdout is given as training data."""
    if isinstance(train, LabelledMatrix) and train.part == "validation":
        raise InvalidDataError(
            "train is the validation part of a holdout, so that everything relevant would count as "
            "seen; give train=holdout.train, and holdout.validation as validation"
        )


def axis_labels(labels: Any, n: int, name: str) -> Labels:
    """Return the labels of one axis as an index."""
    expected = "a label for each of them, in order"
    if isinstance(labels, str | bytes | Mapping | Set) or is_frame(labels):
        raise InvalidDataError(f"{name} is {describe(labels)}; expected {expected}")
    if hasattr(labels, "__dlpack__"):
        labels = as_array(labels, name, expected)
    import pandas as pd  # only where labels are used: importing it costs more than evaluating

    from ..datasets.labels import check_labels

    try:
        index = (
            labels if isinstance(labels, pd.Index) else pd.Index(list(labels), tupleize_cols=False)
        )
        set(index)  # raises where a label cannot be hashed
        index = check_labels(index, name.removesuffix("s"))
    except InvalidDataError:
        raise
    except (TypeError, ValueError, NotImplementedError) as error:  # the last one by a MultiIndex
        raise InvalidDataError(f"{name} cannot be labels: {error}") from None
    if len(index) != n:
        raise InvalidDataError(f"{name} has {len(index)} labels; the matrix has {n} {name}")
    return index
