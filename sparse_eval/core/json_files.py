"""Read and write files that hold one JSON object."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ..errors import InvalidFileError
from .files import replacing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from .types import JSONValue


def read_json(path: Path, keys: Iterable[str], foreign: str) -> dict[str, JSONValue]:
    """Return the object in a JSON file.

    Raises `InvalidFileError`, with the message `foreign` if the file holds anything else or the
    object lacks one of `keys`.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidFileError(f"cannot be read: {error.strerror or error}", path) from None
    except (ValueError, RecursionError):  # not JSON, or not UTF-8
        content = None
    if not isinstance(content, dict) or not content.keys() >= {*keys}:
        raise InvalidFileError(foreign, path)
    return content


def write_json(path: Path, content: Mapping[str, JSONValue]) -> None:
    """Write a JSON file, complete when it appears, or raise `OutputError`."""
    with replacing(path) as temporary:
        text = json.dumps(content, indent=2, allow_nan=False) + "\n"
        temporary.write_text(text, encoding="utf-8")
