"""Files and folders that appear only when they are complete."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


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
