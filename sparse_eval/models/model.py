"""`Model`: what every kind of model has. A new kind is a subclass.

`accepted` needs a branch only for a kind that is made of something else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

if TYPE_CHECKING:
    from ..core.types import AnyArray, CSRMatrix, Integers
    from ..retrieval.ranker import Options, Ranker

#: Bytes that retrieval takes whatever the number of users.
PER_SEARCH = 80_000_000


class Model:
    """A model of any kind, as `as_model` returns it.

    The data of each user, such as a row of factors or the number that a function takes, are an
    array with a row for each user. A block of users takes its rows. By default a model has no such
    data and recommends to any user from the user's row of the training data.
    """

    #: Whether items are ranked here, exactly, rather than by the model's own ``recommend``.
    exact: ClassVar[bool] = True
    #: Blocks begin at multiples of so many users, so that they change no bit.
    step: int = 1
    #: Of how many entries of a user's row the user takes the memory while it is ranked.
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
        """What messages call it."""
        return type(self).__name__

    @property
    def needs_ids(self) -> bool:
        """Whether it should have ids where the data have some."""
        return True

    @property
    def takes_any_user(self) -> bool:
        """Whether it recommends to any user, from the user's row of the training data."""
        return self.shape[0] is None

    def known(self, n_users: int) -> AnyArray:
        """Return the data of each user: row numbers of `n_users` users if it takes any user."""
        return np.arange(n_users)

    def of(self, known: Any) -> Model:
        """Return the model with other users, without ids, given their part of `known`, or None."""
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
            "seen; give these as train"
        )
