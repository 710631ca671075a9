"""Test the command compile: what it says, and what it says where nothing can be written."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Command

from sparse_eval.models import compile as compiling


def test_says_what_was_compiled(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    done = compiling.CompiledKernels(Path("kept"), "znver5", 1)
    monkeypatch.setattr(compiling, "compile_kernels", lambda: done)
    said = "compiled 1 kernel for znver5; all are in kept\n"
    assert command("compile") == (0, said, "")


def test_needs_a_folder(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "writable_folder", lambda: None)
    status, printed, said = command("compile")
    assert (status, printed) == (2, "")
    assert "NUMBA_CACHE_DIR" in said
