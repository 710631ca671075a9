"""Files that appear only when they are complete, and data that are not part of the project."""

import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .environment import REPOSITORY

SHARED = REPOSITORY.parent / "shared"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a temporary file, and move it into place after it is written."""
    unfinished = path.with_name(f"unfinished-{path.name}")
    yield unfinished
    unfinished.replace(path)


def once(folder: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill the folder, unless it exists."""
    if folder.exists():
        return
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    write(unfinished)
    unfinished.rename(folder)


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
