"""Files and folders that appear when everything is in them."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the path of a file to write, which takes its place when that is done."""
    unfinished = path.with_name(f"unfinished-{path.name}")
    yield unfinished
    unfinished.replace(path)


def once(folder: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill the folder, unless it is there."""
    if folder.exists():
        return
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    write(unfinished)
    unfinished.rename(folder)
