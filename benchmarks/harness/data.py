"""Find data that are not part of the project: published data with their own licences."""

from collections.abc import Iterable
from pathlib import Path

from .environment import REPOSITORY

SHARED = REPOSITORY.parent / "shared"


def find(name: str, files: Iterable[Iterable[str]], given: Path | None) -> Path:
    """Return the folder NAME, in a given folder or in ../shared, with one of each of the `files`.

    Raises `FileNotFoundError`, which names the missing files.
    """
    folders = [given] if given else []
    folders += [SHARED / "published", SHARED / "data"]
    wanted = [tuple(alternatives) for alternatives in files]
    for folder in folders:
        place = folder / name
        if all(any((place / file).exists() for file in alternatives) for alternatives in wanted):
            return place
    listed = " and ".join(" or ".join(alternatives) for alternatives in wanted)
    where = f"the folder {name} of --data" if given else f"a folder {name} given by --data"
    raise FileNotFoundError(f"no {listed} in {where}, or in ../shared beside the project")
