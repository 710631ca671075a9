"""`Requests`: relevant items by impression, session or basket, each of which belongs to a user."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arrays import describe
from ..errors import InvalidDataError
from .axes import Axis
from .candidates import Candidates
from .columns import USUAL, Usual
from .paths import kind_of
from .rankings import Rankings
from .relevance import Relevance
from .tables import RankingsScan, engine_of, open_table, to_pandas

if TYPE_CHECKING:
    import pandas as pd

    from ..core.types import AnyArray, Floats, Integers, PathLike
    from .tables import Frame


@dataclass(frozen=True, eq=False, repr=False)
class Requests:
    """The relevant items of requests, such as impressions, sessions or baskets of users.

    Make one with `from_frame` or `from_csr`, and pass it as `validation` to `evaluate`: each
    request has a list of its own, and intervals and tests respect that requests of one user are
    alike.

    Attributes
    ----------
    relevance : Relevance
        One row for each request; its ``users`` are the ids of requests.
    users : Axis
        The ids of the users.
    user_codes : ndarray of int64, shape (n_requests,)
        The position of each request's user among them.
    weights : ndarray of float64, shape (n_requests,), or None
        The weight of each request, above 0.
    candidates : Candidates or None
        The items shown, if the table has items with gain 0.
    name : str
        The column of requests, which lists have too.

    See Also
    --------
    Relevance : Without requests: one row for each user.

    Examples
    --------
    Two lists of ann and one of bob. ann's requests count twice as much together:

    >>> import pandas as pd
    >>> import sparse_eval as se
    >>> clicks = pd.DataFrame({
    ...     "session": ["s1", "s2", "s3"], "user": ["ann", "ann", "bob"], "item": ["x", "y", "x"]})
    >>> lists = pd.DataFrame({
    ...     "session": ["s1", "s1", "s2", "s2", "s3", "s3"], "item": [*"xyxyxy"],
    ...     "rank": [1, 2, 1, 2, 2, 1]})
    >>> requests = se.Requests.from_frame(clicks, request="session")
    >>> requests
    <Requests: 3 requests of 2 users, 2 items>
    >>> ev = se.evaluate(lists, requests, "mrr@2")
    >>> ev["mrr@2"], ev.per_user["mrr@2"].tolist()
    (0.6666666666666666, [0.75, 0.5])
    >>> se.evaluate(lists, requests, "mrr@2", average="user")["mrr@2"]
    0.625
    """

    relevance: Relevance
    users: Axis
    user_codes: Integers
    weights: Floats | None = None
    candidates: Candidates | None = None
    name: str = "request"

    @classmethod
    def from_frame(
        cls,
        df: Frame | PathLike,
        *,
        request: str,
        user: str = "user",
        item: str = "item",
        gain: str | Usual | None = USUAL,
        weight: str | None = None,
    ) -> Requests:
        """Read requests from a table with one row for each relevant or shown item.

        Parameters
        ----------
        df : frame or path
            As in `Relevance.scan`.
        request : str
            The column with the ids of requests. It is never guessed.
        user, item : str
            The columns of the ids. All rows of a request have one user.
        gain : str or None, optional
            As in `Relevance.from_frame`. If there are items with gain 0, the items of a request are
            those shown: its candidates.
        weight : str, optional
            The column of the requests' weights, above 0; all rows of a request have one. By default
            each request counts 1.

        Returns
        -------
        Requests

        Raises
        ------
        InvalidDataError
            If a column is missing, a request has two users or two weights, or a weight is not above
            0. Also as from `Relevance.from_frame`.
        """
        frame = to_pandas(df)
        for role, name in {"request": request, "user": user, "weight": weight}.items():
            if name is not None and list(frame.columns).count(name) != 1:
                raise InvalidDataError(
                    f"{role}: expected one column {name!r}; the columns are "
                    f"{', '.join(map(repr, frame.columns))}",
                    argument=role,
                    column=name,
                )
        others = [name for name in (user, weight) if name is not None]
        relevance = Relevance.from_frame(
            frame.drop(columns=others), user=request, item=item, gain=gain
        )
        names = relevance.users
        assert names is not None  # noqa: S101 - the table has ids
        users, codes = _numbered(_one_each(frame, request, user, names).tolist())
        weights = None
        if weight is not None:
            weights = check_weights(_one_each(frame, request, weight, names).to_numpy())
        return cls(relevance, users, codes, weights, _shown(relevance), request)

    @classmethod
    def from_csr(
        cls,
        matrix: Any,
        users: Any,
        *,
        requests: Any = None,
        items: Any = None,
        weights: Any = None,
    ) -> Requests:
        """Make requests from a matrix with a row for each.

        Parameters
        ----------
        matrix : sparse matrix, shape (n_requests, n_items)
            Gains, as in `Relevance.from_csr`; explicit zeros are items shown.
        users : sequence of hashable, shape (n_requests,)
            The user of each request.
        requests, items : sequence of hashable, optional
            Labels of rows and columns.
        weights : array of float, shape (n_requests,), optional
            Above 0; by default each request counts 1.

        Returns
        -------
        Requests

        Raises
        ------
        InvalidDataError
            If the numbers of users or weights differ from the rows, or a weight is not above 0.
            Also as from `Relevance.from_csr`.
        """
        relevance = Relevance.from_csr(matrix, users=requests, items=items)
        n_requests = relevance.shape[0]
        if not n_requests:
            raise InvalidDataError("there are no requests: the matrix has no rows")
        for name, one in {"users": users, "weights": weights}.items():
            if one is not None and np.shape(one) != (n_requests,):
                raise InvalidDataError(
                    f"{name} is {describe(one)}; expected one for each of {n_requests} requests",
                    argument=name,
                )
        known, codes = _numbered(list(users))
        checked = None if weights is None else check_weights(np.asarray(weights))
        return cls(relevance, known, codes, checked, _shown(relevance))

    def lists(self, predictions: Any) -> Any:
        """Return lists by request: those of a table by its column of requests."""
        is_table = not isinstance(predictions, Rankings | RankingsScan) and (
            engine_of(predictions) is not None
            or (isinstance(predictions, str | Path) and kind_of(predictions).is_table)
        )
        if not is_table:
            return predictions
        names = open_table(predictions).names
        if self.name not in names:
            raise InvalidDataError(
                f"the lists have no column {self.name!r}, the requests; the columns are "
                f"{', '.join(map(repr, names))}"
            )
        return Rankings.scan(predictions, user=self.name)

    def __len__(self) -> int:
        """Return the number of requests."""
        return self.relevance.shape[0]

    def __repr__(self) -> str:
        weighted = ", weighted" if self.weights is not None else ""
        shown = ", with the items shown" if self.candidates is not None else ""
        return (
            f"<Requests: {len(self):,} requests of {len(self.users):,} users, "
            f"{self.relevance.shape[1]:,} items{weighted}{shown}>"
        )


def _one_each(frame: pd.DataFrame, request: str, column: str, names: Axis) -> pd.Series[Any]:
    """Return the one value that each request has in a column, or raise if it has several."""
    pairs = frame[[request, column]].drop_duplicates()
    twice = pairs[pairs[request].duplicated()]
    if len(twice):
        first = twice[request].iloc[0]
        values = pairs.loc[pairs[request] == first, column].tolist()
        raise InvalidDataError(
            f"request {first!r} has the values {', '.join(map(repr, values[:3]))} in column "
            f"{column!r} ({len(twice):,} requests have several); give each request one"
        )
    rows = names.locate(pairs[request].tolist())
    return pairs[column].iloc[np.argsort(rows, kind="stable")].reset_index(drop=True)


def _numbered(owners: list[Any]) -> tuple[Axis, Integers]:
    """Return the users in order, and the position of each request's user among them."""
    known = Axis.of(list(dict.fromkeys(owners)), "users")
    known = known.take(np.argsort(known.to_numpy(), kind="stable"))
    return known, known.locate(owners)


#: The range of weights: beyond it, sums of products lose digits.
_SMALLEST, _LARGEST = 1e-100, 1e100


def check_weights(weights: AnyArray, users: Axis | None = None) -> Floats:
    """Return weights, or raise if they are no numbers above 0; rows are requests, or users."""
    if weights.dtype.kind not in "iuf":
        with suppress(TypeError, ValueError, OverflowError):
            if all(isinstance(one, int | float) and not isinstance(one, bool) for one in weights):
                weights = weights.astype(np.float64)
    if weights.dtype.kind not in "iuf":
        raise InvalidDataError(
            f"weights are {weights.dtype} ({weights[:1].tolist()[0]!r}, …); expected numbers",
            argument="weights",
        )
    checked = weights.astype(np.float64)
    wrong = np.flatnonzero(~((checked >= _SMALLEST) & (checked <= _LARGEST)))
    if len(wrong):
        row = int(wrong[0])
        of = f"request {row}" if users is None else f"user {users[row]!r}"
        raise InvalidDataError(
            f"the weight of {of} is {checked[row]:g}; expected numbers above 0, from "
            f"{_SMALLEST:g} to {_LARGEST:g} ({len(wrong):,} are not)",
            argument="weights",
        )
    return checked


def _shown(relevance: Relevance) -> Candidates | None:
    """Return the items of each request as its candidates, if some are not relevant."""
    if not (relevance.gains == 0).any():
        return None
    return Candidates(
        relevance.shape, relevance.indptr, relevance.items, "shown",
        relevance.users, relevance.items_index,
    )  # fmt: skip
