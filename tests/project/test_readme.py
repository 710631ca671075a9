"""What the README and the documentation say, run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
PAGES = [README, ROOT / "docs" / "index.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]


def examples(page: Path) -> list[object]:
    """Each Python example of a page, named by the heading that it stands under."""
    parts = re.findall(r"^##? (.+?)$|^```python\n(.*?)^```$", page.read_text(), re.M | re.S)
    found, heading = [], ""
    for title, code in parts:
        heading = title or heading
        if code:
            found.append(pytest.param(code, id=heading))
    return found


def test_there_are_examples() -> None:
    assert len(examples(README)) >= 3


@pytest.mark.filterwarnings("ignore:metrics among sampled candidates")
@pytest.mark.slow  # where kernels run as Python
@pytest.mark.parametrize("code", [example for page in PAGES for example in examples(page)])
def test_example_runs(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "example", "exec"), {})  # noqa: S102 - our own page
