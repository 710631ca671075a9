"""The benchmarks run at toy size, and the pages say what the results say."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SUITES = sorted(path.parent.name for path in (BENCHMARKS / "suites").glob("*/suite.py"))


def written():
    return {path.name: path.stat().st_mtime_ns for path in (BENCHMARKS / "results").iterdir()}


@pytest.mark.long
@pytest.mark.slow
def test_every_suite_runs_at_toy_size_and_writes_nothing():
    assert len(SUITES) == 14
    before = written()
    command = [sys.executable, BENCHMARKS / "run.py", "--smoke"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    for suite in SUITES:
        assert f"finished {suite}\n" in done.stderr
    for line in ("lists, diversity@10: scipy: ", "checkpoint, toy-als16-k10: implicit, "):
        assert line in done.stdout
    assert "scale: left out: spark: " in done.stdout
    assert written() == before


def test_refuses_a_page_that_says_something_else(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    pages = importlib.import_module("pages")
    page = tmp_path / "page.md"
    page.write_text("<!-- benchmark:a -->\n1.5 s\n<!-- /benchmark:a -->\n")
    monkeypatch.setattr(pages, "PAGES", (page,))
    assert not pages.rewritten({"a": lambda: "1.5 s"})
    assert "2.5 s" in pages.rewritten({"a": lambda: "2.5 s"})[page]
