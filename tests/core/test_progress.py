"""Where progress is shown: on a terminal, in a notebook, and where it is asked for."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from sparse_eval.core.progress import is_shown
from sparse_eval.errors import InvalidDataError


@pytest.mark.parametrize(
    ("shell", "shown"),
    [
        (None, False),  # IPython is imported, and nobody works in it
        (SimpleNamespace(), False),  # on a terminal
        (SimpleNamespace(kernel=object()), True),
    ],
)
def test_a_notebook_shows_progress(
    monkeypatch: pytest.MonkeyPatch, shell: Any, shown: bool
) -> None:
    assert is_shown(None) is False
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert is_shown(None) is shown
    assert is_shown(False) is False


def test_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_shown(True) is True
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: True))
    assert is_shown(None) is True
    assert is_shown(False) is False
    monkeypatch.setattr(sys, "stderr", None)
    assert is_shown(None) is False
    with pytest.raises(InvalidDataError, match="True, False or None"):
        is_shown("yes")  # type: ignore[arg-type]
