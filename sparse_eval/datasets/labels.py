"""Labels as arrays that can be saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidDataError

if TYPE_CHECKING:
    from ..core.types import AnyArray
    from ..inputs.axes import Axis


def label_array(name: str, labels: Axis) -> AnyArray:
    """Return labels as an array that NumPy stores without pickle.

    Raises
    ------
    InvalidDataError
        If they are neither all text nor all int64.
    """
    if labels.dtype == np.int64:
        return labels.to_numpy()
    texts = labels.tolist()
    if all(isinstance(text, str) for text in texts):
        array = np.array(texts, dtype=np.str_)
        if array.tolist() == texts:  # NumPy drops trailing NUL characters
            return array
    raise InvalidDataError(
        f"{name}: only labels that are all text or all int64 can be saved, and text without a null "
        f"character at its end; rename them first, for example with {name}.map(str)"
    )
