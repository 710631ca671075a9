"""Charts as files: their size, fonts and bytes, and that nothing is left changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import reporting
from PIL import Image
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, OutputError
from sparse_eval.report.style import distinct_names


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def models() -> dict[str, se.Evaluation]:
    return reporting.three()


def write(models: dict[str, se.Evaluation], path: Path) -> Path:
    with se.plots.style(width=3.5, height=2.25):
        return se.plots.save(se.plots.by_cutoff(models, "ndcg"), path)


def test_files_have_the_size_and_the_fonts(
    models: dict[str, se.Evaluation], tmp_path: Path
) -> None:
    file = write(models, tmp_path / "new" / "ndcg.pdf").read_bytes()
    assert b"/MediaBox [ 0 0 252 162 ]" in file
    assert b"/FontFile2" in file  # TrueType, embedded
    assert b"/Type3" not in file
    text = write(models, tmp_path / "ndcg.svg").read_text(encoding="utf-8")
    assert 'width="252pt" height="162pt"' in text
    assert "<text" not in text
    with Image.open(write(models, tmp_path / "ndcg.PNG")) as picture:
        assert picture.size == (1050, 675)  # 300 dots per inch


def test_same_bytes_whatever_the_settings(models: dict[str, se.Evaluation], tmp_path: Path) -> None:
    for kind in ("pdf", "svg", "png"):
        file = write(models, tmp_path / f"a.{kind}")
        with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.dpi": 50}):
            other = write(models, tmp_path / f"b.{kind}")
        assert file.read_bytes() == other.read_bytes()


def test_settings_are_back_after_an_error() -> None:
    before = dict(mpl.rcParams)
    with pytest.raises(ZeroDivisionError), se.plots.style():
        raise ZeroDivisionError
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("size", [0, float("nan"), "3", True])
def test_refuses_sizes(size: Any) -> None:
    with raises(InvalidDataError):
        se.plots.style(size).__enter__()


def test_refuses_other_charts_and_files(models: dict[str, se.Evaluation], tmp_path: Path) -> None:
    ax = se.plots.by_cutoff(models, "ndcg")
    for chart, name in ((ax, "ndcg.eps"), (ax, "ndcg"), (models, "a.pdf")):
        with raises(InvalidDataError):
            se.plots.save(chart, tmp_path / name)  # type: ignore[arg-type]
    (tmp_path / "file").touch()
    with pytest.raises(OutputError):
        se.plots.save(ax, tmp_path / "file" / "a.pdf")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_long_names_that_would_be_the_same_are_kept() -> None:
    names = [f"{'model ' * 8}{end}" for end in ("a b", "a  b")]  # alike in one line
    assert distinct_names(names) == names
    assert distinct_names([f"{'model ' * 8}{end}" for end in "ab"]) == ["model a", "model b"]
