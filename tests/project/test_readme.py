"""What the README says, run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
EXAMPLES = re.findall(r"^## (.+?)$|^```python\n(.*?)^```$", README.read_text(), re.M | re.S)


def examples() -> list[object]:
    """Each Python example, named by the heading that it stands under."""
    found, heading = [], ""
    for title, code in EXAMPLES:
        heading = title or heading
        if code:
            found.append(pytest.param(code, id=heading))
    return found


def test_there_are_examples() -> None:
    assert len(examples()) >= 3


@pytest.mark.filterwarnings("ignore:metrics among sampled candidates")
@pytest.mark.slow  # where kernels run as Python
@pytest.mark.parametrize("code", examples())
def test_example_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(README), "exec"), {})  # noqa: S102 - our own page
