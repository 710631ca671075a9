"""`factor_model`: a model from factors, with biases, cosines or distances, and ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..retrieval.factors import check_factors
from ..retrieval.products import Similarity, as_products
from .checkpoints import Factors
from .identifiers import ids_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from numpy.typing import ArrayLike

    from ..core.types import AnyArray


def factor_model(
    user_factors: AnyArray,
    item_factors: AnyArray,
    *,
    item_biases: ArrayLike | None = None,
    user_biases: ArrayLike | None = None,
    similarity: Similarity = "dot",
    users: Iterable[Hashable] | None = None,
    items: Iterable[Hashable] | None = None,
) -> Factors:
    """Make a model of factors from anywhere, which every function takes that takes a model.

    Parameters
    ----------
    user_factors : ndarray or tensor of float16, float32 or float64, shape (n_users, f)
    item_factors : ndarray or tensor of float16, float32 or float64, shape (n_items, f)
    item_biases, user_biases : array_like of float, shape (n_items,) and (n_users,), optional
        Added to the scores. Biases of users order no list, but are part of its scores.
    similarity : {"dot", "cosine", "euclidean"}
        How a user and an item are compared, see Notes.
    users, items : sequence of hashable, optional
        The ids of the rows, by which they are matched with those of data.

    Returns
    -------
    Factors
        ``user_factors`` and ``item_factors``, whose products are the scores: those given, or with
        more columns, or in float64 and of length 1; ``user_ids`` and ``item_ids``.

    Raises
    ------
    InvalidDataError
        If factors or biases are not finite (the row is named) or of other shapes, or `similarity`
        is unknown.

    See Also
    --------
    top_k, ranks, evaluate_model : Take the model.
    save_model : Save the model.

    Notes
    -----
    With u and v the stored factors of a user and an item, a score is, accumulated in float64 in the
    order of the factors and from left to right,

    - "dot": Σ u·v;
    - "cosine": Σ (u / ‖u‖)·(v / ‖v‖), where the lengths are computed, and the quotients rounded, in
      float64. A vector of zeros has no direction: its score with everything is 0;
    - "euclidean": minus the squared distance, as Σ (2u)·v − ‖v‖² − ‖u‖²: the nearest item comes
      first. Scores of vectors whose distance is small beside their lengths are rounded accordingly;

    then plus the bias of the item, plus the bias of the user. Rankings are exact by these scores,
    and of equal ones the lower item id comes first.

    Examples
    --------
    >>> import numpy as np
    >>> import sparse_eval as se
    >>> users, items = np.array([[3.0, 4.0]]), np.array([[3.0, 4.0], [6.0, 8.0], [5.0, 0.0]])
    >>> se.top_k(se.factor_model(users, items), k=3)
    TopK(ids=array([[1, 0, 2]], dtype=int32), scores=array([[50., 25., 15.]]))
    >>> se.top_k(se.factor_model(users, items, similarity="cosine"), k=3)
    TopK(ids=array([[0, 1, 2]], dtype=int32), scores=array([[1. , 1. , 0.6]]))
    >>> se.top_k(se.factor_model(users, items, similarity="euclidean"), k=3)
    TopK(ids=array([[0, 2, 1]], dtype=int32), scores=array([[  0., -20., -25.]]))
    >>> se.top_k(se.factor_model(users, items, item_biases=[0.0, -40.0, 0.5]), k=3)
    TopK(ids=array([[0, 2, 1]], dtype=int32), scores=array([[25. , 15.5, 10. ]]))
    """
    factors: tuple[Any, Any] = as_products(
        user_factors,
        item_factors,
        item_biases=item_biases,
        user_biases=user_biases,
        similarity=similarity,
    )
    check_factors(*factors)
    model = Factors(*factors)
    return Factors(*factors, *ids_of(model, users, items))
