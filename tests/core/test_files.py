"""Writing files atomically: after an error or interruption at any time nothing is left behind."""

import contextlib
import errno
import os
import stat
import sys
from pathlib import Path

import pytest
from failing import full
from raising import raises
from systems import need_posix

from sparse_eval.core import atomic_files
from sparse_eval.core.atomic_files import (
    as_input,
    as_path,
    make_folder,
    replacing,
    replacing_together,
)
from sparse_eval.errors import InvalidDataError, OutputError


def write(folder, *names, text="new"):
    with replacing_together(folder, last=names[-1]) as temporary_for:
        for name in names:
            temporary_for(name).write_text(text)


#: Code whose every bytecode is a place where Python may handle Ctrl-C.
INTERRUPTED = {atomic_files.__file__, contextlib.__file__}


def is_interrupted(n, work):
    """Raise KeyboardInterrupt before bytecode `n` of a call; False if it has fewer."""
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        if frame.f_code.co_filename not in INTERRUPTED and frame.f_code != write.__code__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            count += 1
            if count == n:
                raise KeyboardInterrupt
        return trace

    tracer_before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(tracer_before)
    return False


@pytest.mark.long
@pytest.mark.parametrize("before", [None, "old"])
@pytest.mark.parametrize("names", [["a.txt"], ["a.txt", "b.txt"]])
def test_an_interruption_at_any_bytecode_leaves_files_of_before_or_all_new_ones(
    tmp_path, names, before
):
    texts = []
    interrupted = True
    while interrupted:
        for name in names:
            (tmp_path / name).unlink(missing_ok=True)
            if before:
                (tmp_path / name).write_text(before)
        interrupted = is_interrupted(len(texts) + 1, lambda: write(tmp_path, *names))
        assert {path.name for path in tmp_path.iterdir()} <= {*names}  # no temporary file
        paths = [tmp_path / name for name in names]
        found = {path.read_text() if path.exists() else None for path in paths}
        assert len(found) == 1
        texts += found
    assert len(texts) > 100
    assert set(texts) == {before, "new"}
    assert texts == sorted(texts, key=lambda text: text == "new")  # old before new, never half


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o666, 0o755, 0o444, 0o400, 0o000])
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize("how", ["replaced", "together", "behind a link"])
def test_a_replaced_file_keeps_its_permissions(tmp_path, mode, mask, how):
    need_posix()
    target = tmp_path / "b.txt"
    target.write_text("old")
    target.chmod(mode)
    place = target
    if how == "behind a link":
        place = tmp_path / "link"
        place.symlink_to(target)
    written_as = []
    before = os.umask(mask)
    try:
        with replacing_together(tmp_path, last=place.name) as temporary_for:
            for name in ["a.txt", place.name] if how == "together" else [place.name]:
                temporary_for(name).write_text("new")
                written_as.append(stat.S_IMODE(temporary_for(name).stat().st_mode))
    finally:
        os.umask(before)
    assert stat.S_IMODE(target.stat().st_mode) == mode
    assert written_as[-1] & 0o077 & ~mode == 0  # others cannot read it earlier either
    target.chmod(0o600)
    assert target.read_text() == "new"
    if how == "together":
        assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o666 & ~mask


@pytest.mark.parametrize("name", ["", "missing/table.csv", "file/table.csv", "x" * 300, "loop"])
def test_refuses_paths_that_cannot_be_written(tmp_path, name):
    (tmp_path / "file").write_text("")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with raises(OutputError), replacing(tmp_path / name):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "loop"]


def test_a_pattern_is_a_path_without_a_file(monkeypatch):
    """Windows cannot look it up."""

    def refuse(_):
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(Path, "stat", refuse)
    assert as_input("logs/*.csv") == Path("logs/*.csv")


def test_files_are_replaced_together_or_not_at_all(tmp_path):
    def texts():
        return [path.read_text() for path in tmp_path.glob("[!.]*")]

    write(tmp_path, "a.txt", "b.txt", text="old")
    with raises(OutputError), replacing_together(tmp_path, last="b.txt") as temporary_for:
        temporary_for("a.txt").write_text("new")
        full()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old", "old"]
    with replacing_together(tmp_path, last="b.txt") as temporary_for:
        for name in ("a.txt", "b.txt"):
            temporary_for(name).write_text("new")
        assert texts() == ["old", "old"]
    assert texts() == ["new", "new"]


def test_refuses_paths_that_are_no_folder_or_file(tmp_path):
    assert make_folder(tmp_path / "a" / "b").is_dir()
    for function in (as_path, make_folder):
        with raises(InvalidDataError):
            function("")
    (tmp_path / "file").write_text("")
    with raises(OutputError):
        make_folder(tmp_path / "file")
