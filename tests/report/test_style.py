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


def test_pdf_has_the_size_and_the_fonts(models: dict[str, se.Evaluation], tmp_path: Path) -> None:
    file = write(models, tmp_path / "new" / "ndcg.pdf").read_bytes()
    assert b"/MediaBox [ 0 0 252 162 ]" in file
    assert b"/FontFile2" in file  # TrueType, embedded
    assert b"/Type3" not in file
    assert b"/CreationDate" not in file


def test_svg_has_no_text_that_needs_a_font(
    models: dict[str, se.Evaluation], tmp_path: Path
) -> None:
    text = write(models, tmp_path / "ndcg.svg").read_text(encoding="utf-8")
    assert 'width="252pt" height="162pt"' in text
    assert "<text" not in text
    assert "<dc:date>" not in text


def test_png_has_300_dots_per_inch(models: dict[str, se.Evaluation], tmp_path: Path) -> None:
    with Image.open(write(models, tmp_path / "ndcg.PNG")) as picture:
        assert picture.size == (1050, 675)


@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_same_bytes_whatever_the_settings(
    models: dict[str, se.Evaluation], tmp_path: Path, kind: str
) -> None:
    files = [write(models, tmp_path / f"a.{kind}")]
    with mpl.rc_context({"font.size": 30, "axes.facecolor": "red", "savefig.dpi": 50}):
        before = dict(mpl.rcParams)
        files.append(write(models, tmp_path / f"b.{kind}"))
        assert dict(mpl.rcParams) == before
    assert files[0].read_bytes() == files[1].read_bytes()


def test_figures_of_several_charts_and_of_others(
    models: dict[str, se.Evaluation], tmp_path: Path
) -> None:
    with se.plots.style(width=7):
        figure, axes = plt.subplots(1, 2)
        se.plots.means(models, "ndcg@10", ax=axes[0])
        se.plots.concentration(models, ax=axes[1])
        file = se.plots.save(figure, tmp_path / "two.svg").read_text(encoding="utf-8")
    assert tuple(figure.get_size_inches()) == pytest.approx((7, 4.9))
    assert 'width="504pt"' in file
    plain = plt.figure(figsize=(2, 2))
    assert b"144 144" in se.plots.save(plain, tmp_path / "empty.pdf").read_bytes()


def fail() -> None:
    with se.plots.style():
        assert mpl.rcParams["font.size"] == 8
        raise ZeroDivisionError


def test_settings_are_back_after_an_error() -> None:
    before = dict(mpl.rcParams)
    with pytest.raises(ZeroDivisionError):
        fail()
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("size", [0, -1, float("nan"), 101, "3", True, None])
def test_refuses_sizes(size: Any) -> None:
    with raises(InvalidDataError):
        se.plots.style(size).__enter__()


def test_refuses_other_charts_and_files(models: dict[str, se.Evaluation], tmp_path: Path) -> None:
    ax = se.plots.by_cutoff(models, "ndcg")
    for name in ("ndcg.eps", "ndcg", "ndcg.pdf.txt"):
        with raises(InvalidDataError):
            se.plots.save(ax, tmp_path / name)
    for chart in (models, None, "ax"):
        with raises(InvalidDataError):
            se.plots.save(chart, tmp_path / "a.pdf")  # type: ignore[arg-type]
    (tmp_path / "file").touch()
    with pytest.raises(OutputError):
        se.plots.save(ax, tmp_path / "file" / "a.pdf")
    assert [file.name for file in tmp_path.iterdir()] == ["file"]
