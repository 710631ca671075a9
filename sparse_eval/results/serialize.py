"""Parts as bytes, so that one computed elsewhere, or saved, can be merged.

What is written is an archive of NumPy arrays, one of which holds all that is not an array, as JSON.
Nothing in it is a pickle, so that reading it runs nothing. A part comes back with the same bits.
"""

from __future__ import annotations

import io
import json
import struct
from dataclasses import fields
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.exact_sums import Moments
from ..core.saved_arrays import read_arrays
from ..errors import InvalidDataError
from ..metrics.random_baseline import Expectation, RandomSums
from .candidates import CandidateCounts
from .counts import FirstRanks, SeenCounts
from .totals import ListCounts, ListSums, MergeKey, Part, Retrieval, Span, Totals, UserValues

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..core.types import AnyArray, Integers
    from ..metrics.random_baseline import RandomTotals

#: Version of the layout.
FORMAT = 2

_HEADER = "header"


def pack(part: Part) -> bytes:
    """Write a part.

    Returns
    -------
    bytes
        An ``.npz`` archive of some kilobytes, and of what the users' values take if it has them.
    """
    totals, values = part
    arrays: dict[str, AnyArray] = {}
    header = {
        "format": FORMAT,
        "key": totals.key._asdict() | {"largest_gain": _write_float(totals.key.largest_gain)},
        "span": totals.span._asdict(),
        "n_counted": totals.n_counted,
        "n_without_list": totals.n_without_list,
        "moments": [_write_moments(moments) for moments in totals.moments],
        "samples": [sample is not None for sample in totals.samples],
        "ratios": {
            str(row): [[_write_moments(above), _write_moments(below)] for above, below in ratios]
            for row, ratios in totals.ratios.items()
        },
        "lists": [[bool(one), bool(other), int(k)] for one, other, k in totals.lists],
        "list_sums": list(totals.list_sums),
        "retrieval": None if totals.retrieval is None else totals.retrieval._asdict(),
        "random": _write_random(totals.random),
        "seen": totals.seen,
        "candidates": totals.candidates,
        "first_ranks": totals.first_ranks,
        "values": values is not None,
        "users": None,
    }
    for row, sample in enumerate(totals.samples):
        if sample is not None:
            arrays[f"samples.{row}"] = sample
    of_lists: dict[str, Any] = {f"lists.{n}": one for n, one in enumerate(totals.lists.values())}
    of_lists |= {f"list_sums.{row}": sums for row, sums in totals.list_sums.items()}
    for place, counts in of_lists.items():
        for field in fields(counts):
            arrays[f"{place}.{field.name}"] = _narrow(getattr(counts, field.name))
    if values is not None:
        for field in fields(UserValues):
            arrays[f"values.{field.name}"] = getattr(values, field.name)
        if values.users.dtype == object:  # text
            header["users"] = arrays.pop("values.users").tolist()
    text = json.dumps(header, allow_nan=False, default=index)
    arrays[_HEADER] = np.frombuffer(text.encode("ascii"), np.uint8)
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def unpack(data: bytes) -> Part:
    """Read what `pack` wrote.

    Raises
    ------
    InvalidDataError
        If the bytes are not a part, or were written by a version with another layout.
    """
    try:
        return _read_part(read_arrays(io.BytesIO(data)))
    except (
        ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError,
        struct.error,
    ) as error:  # fmt: skip
        raise InvalidDataError(
            f"the totals of an evaluation cannot be read ({type(error).__name__}: {error}); give "
            "what this version of sparse_eval wrote"
        ) from None


def _read_part(arrays: Mapping[str, AnyArray]) -> Part:
    header = json.loads(arrays[_HEADER].tobytes().decode("ascii"))
    if header["format"] != FORMAT:
        raise ValueError(f"layout {header['format']}, and {FORMAT} can be read here")
    key = header["key"]
    key |= {"metrics": tuple(key["metrics"]), "largest_gain": _read_float(key["largest_gain"])}
    values = None
    if header["values"]:
        users = header["users"]
        labels = arrays["values.users"] if users is None else np.array(users, object)
        others = [arrays[f"values.{field.name}"] for field in fields(UserValues)[1:]]
        values = UserValues(labels, *others)
    totals = Totals(
        MergeKey(**key),
        Span(**header["span"]),
        header["n_counted"],
        header["n_without_list"],
        tuple(map(_read_moments, header["moments"])),
        tuple(
            arrays[f"samples.{row}"] if kept else None for row, kept in enumerate(header["samples"])
        ),
        {
            int(row): tuple((_read_moments(above), _read_moments(below)) for above, below in ratios)
            for row, ratios in header["ratios"].items()
        },
        {
            (one, other, k): ListCounts(*_of_lists(arrays, f"lists.{number}", ListCounts))
            for number, (one, other, k) in enumerate(header["lists"])
        },
        None if header["retrieval"] is None else Retrieval(**header["retrieval"]),
        _read_random(header["random"]),
        # Older versions did not write these.
        _read_counts(SeenCounts, header.get("seen")),
        _read_counts(CandidateCounts, header.get("candidates")),
        {
            row: ListSums(*_of_lists(arrays, f"list_sums.{row}", ListSums))
            for row in header.get("list_sums", [])
        },
        _read_counts(FirstRanks, header.get("first_ranks")),
    )
    return Part(totals, values)


def _of_lists(arrays: Mapping[str, AnyArray], place: str, kind: type) -> Iterator[Integers]:
    """Yield the fields of `ListCounts` or `ListSums`, at a place in the archive."""
    return (arrays[f"{place}.{field.name}"].astype(np.int64) for field in fields(kind))


def _write_moments(moments: Moments) -> list[Any]:
    # Hexadecimal, because Python refuses to read decimal numbers of thousands of digits.
    n, total, squares, rest = moments
    return [n, hex(total), hex(squares), _write_float(rest)]


def _read_moments(written: list[Any]) -> Moments:
    n, total, squares, rest = written
    return Moments(n, int(total, 16), int(squares, 16), _read_float(rest))


def _write_random(random: RandomTotals | None) -> list[Any] | None:
    if random is None:
        return None
    return [
        {
            "values": list(map(_write_moments, total.values)),
            "denominators": list(map(_write_moments, total.denominators)),
        }
        if isinstance(total, RandomSums)
        else total and list(map(_write_float, total))
        for total in random
    ]


def _read_random(written: list[Any] | None) -> RandomTotals | None:
    if written is None:
        return None
    return tuple(
        RandomSums(
            tuple(map(_read_moments, total["values"])),
            tuple(map(_read_moments, total["denominators"])),
        )
        if isinstance(total, dict)
        else total and Expectation(*map(_read_float, total))
        for total in written
    )


def _read_counts(kind: Any, written: list[Any] | None) -> Any:
    return None if written is None else kind(*written)


def _write_float(number: float | None) -> str | None:
    """Return the eight bytes of a float as text: infinities and every NaN have some too."""
    return None if number is None else struct.pack(">d", number).hex()


def _read_float(text: str | None) -> Any:
    return None if text is None else struct.unpack(">d", bytes.fromhex(text))[0]


def _narrow(counts: Integers) -> AnyArray:
    """Return counts in as few bytes as the largest takes: there is one for each item."""
    return counts.astype(np.min_scalar_type(counts.max(initial=0)))
