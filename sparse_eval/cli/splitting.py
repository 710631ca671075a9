"""Split interactions by `--method` and its options."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

from ..errors import InvalidDataError
from .options import Method, Order, Splitting
from .printing import step

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, SparseInput
    from ..datasets import Interactions
    from ..datasets.split import Holdout
    from ..datasets.split.events import Repeats


def split_by(
    interactions: Interactions | SparseInput,
    splitting: Splitting,
    seed: int,
    purpose: str = "split",
    *,
    three_way: bool = False,
    test_at: str | None = None,
) -> Holdout:
    """Split interactions; raise if an option does not apply to the method.

    With `three_way` there is a test part, which begins at `test_at` if that is given. Otherwise it
    is as large a share, or as many pairs, as the validation part is then of what is left.
    """
    method = splitting.how
    _check_options(splitting, method, test_at, three_way)
    with step(f"{purpose} ({method.value})") as note:
        holdout = _split(interactions, splitting, seed, three_way, test_at)
        if three_way and method in (Method.random, Method.leave_k_out):
            part = _split(holdout.train, splitting, seed, three_way, test_at)
            holdout = with_test(part, holdout)
        _check_held_out(holdout, "users have too few distinct items for this method and options")
        if splitting.only_known:
            holdout = only_known(holdout)
        note(", ".join([describe(holdout), *holdout.remarks()]))
    return holdout


def with_test(part: Holdout, whole: Holdout) -> Holdout:
    """Return a split of training data with what was held out before it as the test part."""
    from ..datasets.split import Holdout

    return Holdout(part.train, part.validation, whole.users, whole.items, test=whole.validation)


def only_known(holdout: Holdout) -> Holdout:
    """Hold out only what training knows, or raise if that is nothing."""
    known = holdout.known()
    _check_held_out(known, "all of it has users or items that training does not know")
    return known


def describe(holdout: Holdout) -> str:
    """Return the number of distinct pairs in each part, and how many were only shown."""

    def count(matrix: CSRMatrix) -> str:
        shown = matrix.nnz - int((matrix.data != 0).sum())
        return f"{matrix.nnz:,} pairs" + (f" ({shown:,} shown, not clicked)" if shown else "")

    parts = f"{count(holdout.train)} to train on, {count(holdout.validation)} held out"
    return parts if holdout.test is None else f"{parts}, {count(holdout.test)} for the test"


def _check_options(
    splitting: Splitting, method: Method, test_at: str | None, three_way: bool
) -> None:
    """Raise if an option does not apply to the method, or needs another one."""
    by_share = method in (Method.random, Method.temporal, Method.users)
    if (splitting.n if by_share else splitting.fraction) is not None:
        given, expected = ("--n", "--fraction") if by_share else ("--fraction", "--n")
        raise InvalidDataError(f"{given} does not apply to --method {method.value}; use {expected}")
    for name, value, needed in (
        ("at", splitting.at, Method.temporal),
        ("gap", splitting.gap, Method.temporal),
        ("test-at", test_at, Method.temporal),
        ("fold-in", splitting.fold_in, Method.users),
        ("order", splitting.order, Method.users),
    ):
        if value is not None and method is not needed:
            raise InvalidDataError(
                f"--{name} does not apply to --method {method.value}; use --method {needed.value}"
            )
    if splitting.keep_repeats and method not in (Method.temporal, Method.last_n):
        raise InvalidDataError(
            f"--keep-repeats does not apply to --method {method.value}; use temporal or last-n"
        )
    if test_at is not None and splitting.at is None:
        raise InvalidDataError("--test-at needs --at, where the validation part begins")
    if three_way and splitting.at is not None and test_at is None:
        raise InvalidDataError("--at needs --test-at here, where the test part begins")


def _check_held_out(holdout: Holdout, reason: str) -> None:
    for name, matrix in (("validation", holdout.validation), ("the test", holdout.test)):
        if matrix is not None and matrix.nnz == 0:
            raise InvalidDataError(f"nothing is held out for {name}: {reason}")


def _split(
    interactions: Any, splitting: Splitting, seed: int, three_way: bool, test_at: str | None
) -> Holdout:
    from ..datasets import split

    share = 0.2 if splitting.fraction is None else splitting.fraction
    n = 1 if splitting.n is None else splitting.n
    repeats: Repeats = "keep" if splitting.keep_repeats else "drop"
    # The test part is a share of all, and validation of what is left.
    rest, test = (share * (1 - share), share) if three_way else (share, None)
    match splitting.how:
        case Method.random:
            return split.random(interactions, fraction=share, seed=seed)
        case Method.leave_k_out:
            return split.leave_k_out(interactions, k=n, seed=seed)
        case Method.last_n:
            return split.last_n(interactions, n=n, test=n if three_way else None, repeats=repeats)
        case Method.temporal:
            temporal = partial(
                split.temporal, interactions, gap=_number_or_text(splitting.gap), repeats=repeats
            )
            if splitting.at is None:
                return temporal(fraction=rest, test=test)
            at, test_begins = _number_or_text(splitting.at), _number_or_text(test_at)
            return temporal(at=at, fraction=splitting.fraction, test=test_begins)
        case Method.users:
            return split.users(
                interactions,
                fraction=rest,
                test=test,
                fold_in=0.8 if splitting.fold_in is None else splitting.fold_in,
                order="time" if splitting.order is Order.time else "random",
                seed=seed,
            )


def _number_or_text(text: str | None) -> int | str | None:
    """Return a whole number, which is in the unit of the timestamps, or a date or duration.

    Python makes no number of more than 4,300 digits.
    """
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,4000}", text) else text
