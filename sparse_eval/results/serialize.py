"""Parts as bytes, so that one computed in another process or on another machine can be added.

What is written is a line that says what it is, a SHA-256 of the rest, and an archive of NumPy
arrays, one of which holds all that is no array, as JSON. Nothing in it is a pickle, so that
reading it runs nothing. A part comes back with the same bits.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
import zipfile
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.exact_sums import Moments
from ..errors import InvalidDataError
from .parts import ListCounts, Part, Retrieval, Rows, Span, Terms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Arrays = dict[str, NDArray[Any]]

__all__ = ["pack", "unpack"]

#: What the bytes begin with. Another layout takes another number.
MARK = b"sparse_eval part 1\n"

_HEADER = "header"
_DIGEST_SIZE = hashlib.sha256().digest_size


def pack(part: Part) -> bytes:
    """Write a part.

    Parameters
    ----------
    part : Part

    Returns
    -------
    bytes
        Some kilobytes, and what the users' rows take where the part has them.
    """
    arrays: Arrays = {}
    header = {
        "terms": part.terms._asdict() | {"largest_gain": _written(part.terms.largest_gain)},
        "span": part.span._asdict(),
        "n_counted": part.n_counted,
        "n_without_list": part.n_without_list,
        "moments": [_moments(one) for one in part.moments],
        "few": [values is not None for values in part.few],
        "ratios": {
            str(row): [[_moments(above), _moments(below)] for above, below in ratios]
            for row, ratios in part.ratios.items()
        },
        "lists": [[bool(one), bool(other), int(k)] for one, other, k in part.lists],
        "rows": part.rows is not None,
        "users": None,
        "retrieval": None if part.retrieval is None else part.retrieval._asdict(),
    }
    for row, values in enumerate(part.few):
        if values is not None:
            arrays[f"few.{row}"] = values
    for number, counts in enumerate(part.lists.values()):
        for field in fields(ListCounts):
            arrays[f"lists.{number}.{field.name}"] = _narrow(getattr(counts, field.name))
    if part.rows is not None:
        for field in fields(Rows):
            arrays[f"rows.{field.name}"] = getattr(part.rows, field.name)
        if part.rows.users.dtype == object:  # text
            header["users"] = arrays.pop("rows.users").tolist()
    text = json.dumps(header, allow_nan=False, default=_whole)
    arrays[_HEADER] = np.frombuffer(text.encode("ascii"), np.uint8)
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    body = stream.getvalue()
    return MARK + hashlib.sha256(body).digest() + body


def unpack(data: bytes) -> Part:
    """Read what `pack` wrote.

    Parameters
    ----------
    data : bytes

    Returns
    -------
    Part

    Raises
    ------
    InvalidDataError
        If the bytes are no part, were written by a version with another layout, or were damaged
        on the way.
    """
    if not data.startswith(MARK):
        raise InvalidDataError(
            f"{len(data)} bytes are no part of an evaluation: they begin with {data[:8]!r}, and "
            f"{MARK!r} was expected; give what pack of this version of sparse_eval returned"
        )
    start = len(MARK) + _DIGEST_SIZE
    body = data[start:]
    if hashlib.sha256(body).digest() != data[len(MARK) : start]:
        raise InvalidDataError(
            f"a part of an evaluation of {len(data)} bytes does not have the SHA-256 that it was "
            "written with: bytes were lost or changed on the way; send it again"
        )
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
            return _part(arrays)
    except (ValueError, LookupError, TypeError, OSError, EOFError, struct.error) as error:
        raise _unreadable(error) from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError) as error:
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> InvalidDataError:
    return InvalidDataError(
        f"a part of an evaluation cannot be read ({type(error).__name__}: {error}); give what pack "
        "of this version of sparse_eval returned"
    )


def _part(arrays: Mapping[str, NDArray[Any]]) -> Part:
    header = json.loads(arrays[_HEADER].tobytes().decode("ascii"))
    terms = header["terms"]
    terms |= {"metrics": tuple(terms["metrics"]), "largest_gain": _read(terms["largest_gain"])}
    rows = None
    if header["rows"]:
        users = header["users"]
        labels = arrays["rows.users"] if users is None else np.array(users, object)
        others = [arrays[f"rows.{field.name}"] for field in fields(Rows) if field.name != "users"]
        rows = Rows(labels, *others)
    return Part(
        Terms(**terms),
        Span(**header["span"]),
        header["n_counted"],
        header["n_without_list"],
        tuple(_moments_of(one) for one in header["moments"]),
        tuple(
            arrays[f"few.{row}"] if is_kept else None for row, is_kept in enumerate(header["few"])
        ),
        {
            int(row): tuple((_moments_of(above), _moments_of(below)) for above, below in ratios)
            for row, ratios in header["ratios"].items()
        },
        {
            (one, other, k): ListCounts(
                *(
                    arrays[f"lists.{number}.{field.name}"].astype(np.int64)
                    for field in fields(ListCounts)
                )
            )
            for number, (one, other, k) in enumerate(header["lists"])
        },
        rows,
        None if header["retrieval"] is None else Retrieval(**header["retrieval"]),
    )


def _moments(moments: Moments) -> list[Any]:
    # Hexadecimal, because Python refuses to read decimal numbers of thousands of digits.
    return [moments.n, hex(moments.total), hex(moments.squares), _written(moments.endless)]


def _moments_of(written: list[Any]) -> Moments:
    n, total, squares, endless = written
    found = _read(endless)
    if found is None:
        raise ValueError("moments without the sum of what is endless")
    return Moments(n, int(total, 16), int(squares, 16), found)


def _written(number: float | None) -> str | None:
    """Return the eight bytes of a float as text: infinities and every NaN have some too."""
    return None if number is None else struct.pack(">d", number).hex()


def _read(text: str | None) -> float | None:
    return None if text is None else float(struct.unpack(">d", bytes.fromhex(text))[0])


def _whole(number: object) -> int:
    """Return a whole number of NumPy, which JSON does not know, as one of Python."""
    if isinstance(number, np.integer):
        return int(number)
    raise TypeError(f"{type(number).__name__} is not known to JSON")


def _narrow(counts: NDArray[np.int64]) -> NDArray[Any]:
    """Return counts in as few bytes as the largest takes: there is one for each item."""
    return counts.astype(np.min_scalar_type(counts.max(initial=0)))
