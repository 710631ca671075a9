"""`Model`, the base class of every kind of model, and `Factors`, the most usual kind.

A new kind is a subclass of `Model`. `as_model` needs a branch for it only if it is made of
something else, such as an array.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from ..core.atomic_files import replacing_npz
from ..retrieval.ranker import CandidateSearch, check_factors
from ..retrieval.search import Search
from ..retrieval.similarities import Similarity, as_products
from .ids import ITEM_IDS, USER_IDS, ids_of, keep_ids

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from numpy.typing import ArrayLike

    from ..core.types import AnyArray, CSRMatrix, Integers, PathLike
    from ..retrieval.ranker import Options, Ranker

#: Bytes that retrieval takes for any number of users.
PER_SEARCH = 80_000_000


class Model:
    """A model of any kind, as `as_model` returns it.

    The data of the users, such as their factors or the numbers that a function takes, are an array
    with a row for each user. A block of users takes its rows. By default a model has no such data
    and recommends to any user from the user's row of the training data.
    """

    #: Whether items are ranked here, exactly, rather than by the model's own ``recommend``.
    exact: ClassVar[bool] = True
    #: Blocks begin at multiples of this number of users, so that they change no bit.
    step: int = 1
    #: The memory that ranking a user takes, in entries of the user's row.
    entries_per_user: int = 0
    #: The fitted model of implicit, if it is one.
    trained: Any = None

    @property
    def shape(self) -> tuple[int | None, int]:
        """The number of users, None if it takes any, and of items."""
        raise NotImplementedError

    @property
    def factors(self) -> Any:
        """The `Factors` of its users and items, None if it has none."""
        return None

    def with_users(self, user_factors: AnyArray, user_ids: Any) -> Model:
        """Return a model that has factors with other users."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        """Its name in messages."""
        return type(self).__name__

    @property
    def needs_ids(self) -> bool:
        """Whether it should have ids where the data have some."""
        return True

    @property
    def takes_any_user(self) -> bool:
        """Whether it recommends to any user, from the user's row of the training data."""
        return self.shape[0] is None

    def check(self) -> None:
        """Raise `InvalidDataError` if its numbers are not valid, unless `as_model` checked them."""

    def known(self, n_users: int) -> AnyArray:
        """Return the data of each user: row numbers of `n_users` users if it takes any user."""
        return np.arange(n_users)

    def of(self, known: Any) -> Model:
        """Return the model with other users, given their part of `known`; None for no users.

        It has no ids.
        """
        return self

    def take(self, rows: Integers) -> Model:
        """Return the model with some of its users only."""
        return self if self.takes_any_user else self.of(self.known(0)[rows])

    def bound(self, train: Any) -> Model:
        """Return the model with the users and items of `train` if it does not have its own.

        Raises
        ------
        InvalidDataError
            If `train` does not show them, or leaves open whether a square matrix is one of weights.
        """
        return self

    def ranker(self, train: CSRMatrix | None, options: Options) -> Ranker:
        """Return the `Ranker` of the model's users.

        Parameters
        ----------
        train : csr_matrix, shape (n_users, n_items), or None
            What users have, for a model that takes any.
        options : Options
        """
        raise NotImplementedError

    @property
    def memory(self) -> int:
        """The bytes that ranking takes in addition to the model, for any number of users."""
        return PER_SEARCH

    @property
    def unfolded(self) -> str:
        """Why no factors of new users can be found."""
        return (
            f"a {self.name} has no user factors: it recommends from the items that users have "
            "seen. Pass these as train"
        )


#: Bytes that retrieval takes for each number in the factors of items.
PER_ITEM_FACTOR = 4


class _Factors(NamedTuple):
    user_factors: AnyArray
    item_factors: AnyArray
    user_ids: Any = None
    item_ids: Any = None


class Factors(_Factors, Model):
    """The factors of users and items, in place of a model.

    Attributes
    ----------
    user_factors, item_factors : ndarray of float, shape (n_users, f), (n_items, f)
        They may be memory-mapped.
    user_ids, item_ids : array_like, optional
        The ids of the rows.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """The number of users and of items."""
        return len(self.user_factors), len(self.item_factors)

    @property
    def factors(self) -> Factors:
        """The factors."""
        return self

    def check(self) -> None:
        """Raise `InvalidDataError` if factors are not finite, or differ in width."""
        check_factors(self.user_factors, self.item_factors)

    def known(self, n_users: int) -> AnyArray:
        """Return the factors of each user."""
        return self.user_factors

    def of(self, known: Any) -> Factors:
        """Return the same factors of items, without ids, with others of users."""
        return Factors(self.user_factors[:0] if known is None else known, self.item_factors)

    def with_users(self, user_factors: AnyArray, user_ids: Any) -> Factors:
        """Return the model with other users, as it was given."""
        return self._replace(user_factors=user_factors, user_ids=user_ids)

    def ranker(self, train: CSRMatrix | None, options: Options) -> Ranker:
        """Return the search for the largest products; `train` does not count."""
        among = options.candidates
        search = Search if among is None or among.for_all else CandidateSearch
        return search(self.user_factors, self.item_factors, options)

    @property
    def entries_per_user(self) -> int:  # type: ignore[override]
        """The memory of a user's factors, in entries of the user's row."""
        return int(self.item_factors.shape[1]) // 4

    @property
    def memory(self) -> int:
        """The bytes that ranking takes for any number of users, without the model."""
        return PER_SEARCH + PER_ITEM_FACTOR * self.shape[1] * int(self.item_factors.shape[1])

    def __repr__(self) -> str:
        n_users, n_items = self.shape
        width = self.item_factors.shape[1]
        return f"Factors({n_users:,} users × {n_items:,} items, {width:,} factors)"

    def save(self, path: PathLike) -> None:
        """Save the factors, without ids; `save_model` saves them with these."""
        with replacing_npz(path) as temporary:
            np.savez(temporary, user_factors=self.user_factors, item_factors=self.item_factors)


class ImplicitFactors(Factors):
    """The factors of a fitted model of implicit, which ranks by their product."""

    trained: Any

    @classmethod
    def of_model(cls, model: Any) -> ImplicitFactors:
        """Return the factors of a model, with its ids."""
        ids = (getattr(model, name, None) for name in (USER_IDS, ITEM_IDS))
        factors = cls(model.user_factors, model.item_factors, *ids)
        factors.trained = model
        return factors

    @property
    def name(self) -> str:
        """The name of its class in implicit."""
        return type(self.trained).__name__

    def with_users(self, user_factors: AnyArray, user_ids: Any) -> Factors:
        """Return the model of implicit with other users."""
        some = copy(self.trained)
        some.user_factors = user_factors
        keep_ids(some, user_ids, ids_of(self)[1])
        some.trained_on = None  # these users may have other training data
        return ImplicitFactors.of_model(some)


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
    """Make a model from any factors, for every function that takes a model.

    Parameters
    ----------
    user_factors : ndarray or tensor of float16, float32 or float64, shape (n_users, f)
    item_factors : ndarray or tensor of float16, float32 or float64, shape (n_items, f)
    item_biases, user_biases : array_like of float, shape (n_items,) and (n_users,), optional
        Added to the scores. Biases of users order no list, but are part of its scores.
    similarity : {"dot", "cosine", "euclidean"}
        How a user and an item are compared, see Notes.
    users, items : sequence of hashable, optional
        The ids of the rows, to match them with the ids of data.

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
    - "euclidean": minus the squared distance, as Σ (2u)·v − ‖v‖² − ‖u‖². The nearest item comes
      first. Scores are rounded coarsely if the distance of two vectors is small relative to their
      lengths;

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
    return Factors(*factors, *ids_of(Factors(*factors), users, items))
