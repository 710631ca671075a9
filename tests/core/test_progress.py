"""Where progress is shown, and how: on a terminal, in a notebook, in a log, and on request."""

import io
import subprocess
import sys
from types import SimpleNamespace

import pytest

from sparse_eval.core.progress import lines_without_terminal, progress_bar


def is_shown(given):
    return hasattr(progress_bar(given, range(0)), "start_t")


def test_a_notebook_shows_progress(monkeypatch):
    assert is_shown(None) is False
    for shell, shown in (
        (None, False),  # IPython is imported, and nobody works in it
        (SimpleNamespace(), False),  # on a terminal
        (SimpleNamespace(kernel=object()), True),
    ):
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))  # noqa: B023
        assert is_shown(None) is shown
        assert is_shown(False) is False
    with progress_bar(True, total=1) as bar:
        assert bar.fp == sys.stdout


def test_shows_no_bar_for_what_is_done_within_a_second(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar(None, range(3)) as bar:
        bar.start_t += 3600  # in an hour, so that no pause of the machine counts
        for i in bar:
            bar.set_postfix_str(str(i), refresh=False)
    assert stream.getvalue() == ""
    for _ in progress_bar(True, range(3)):
        pass
    assert "100%" in stream.getvalue()
    with progress_bar(None, total=2) as bar:
        bar.start_t -= 2  # two seconds ago
        bar.update(2)
    assert stream.getvalue().count("2/2") > 0


WITHOUT_WIDGETS = """
import sys
from types import SimpleNamespace
sys.modules["ipywidgets"] = None
shell = SimpleNamespace(config={"IPKernelApp": {}}, kernel=object())
sys.modules["IPython"] = SimpleNamespace(get_ipython=lambda: shell)
sys.modules["IPython.display"] = SimpleNamespace(display=print, clear_output=print, HTML=str)
from sparse_eval.core.progress import progress_bar
list(progress_bar(True, range(3)))
"""


@pytest.mark.long
def test_a_notebook_without_widgets_shows_no_warning():
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", WITHOUT_WIDGETS],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "IProgress" not in done.stderr, done.stderr


def test_writes_a_line_now_and_then_without_a_terminal(monkeypatch):
    def written(given):
        stream = io.StringIO()
        monkeypatch.setattr(sys, "stderr", stream)
        with progress_bar(given, total=8, desc="score", unit=" users") as bar:
            for number in range(8):
                if number in (4, 6) and hasattr(bar, "start_t"):
                    bar.start_t -= 40  # forty seconds pass
                    bar.last_print_t -= 40
                bar.set_postfix_str("als.npz", refresh=False)
                bar.update()
        return stream.getvalue()

    assert written(None) == ""
    with lines_without_terminal():
        lines = written(None).splitlines()
        assert written(False) == ""
        assert "\r" in written(True)
    assert written(None) == ""
    assert [line.partition(" in ")[0] for line in lines] == [
        "score: 5/8 users",
        "score: 7/8 users",
    ]
    assert lines[0].endswith(", als.npz")
