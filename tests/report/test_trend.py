"""The trend of a history, on the page."""

import re

import pytest
import reporting
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError
from sparse_eval.report.page import _template
from sparse_eval.report.trend import describe_trend

pytestmark = pytest.mark.long

EVS = reporting.three()


@pytest.fixture
def history(tmp_path):
    history = se.History(tmp_path / "nights.jsonl")
    for day, name in enumerate(("poor", "fair", "good", "good"), start=1):
        history.append(EVS[name], name, time=f"2026-11-0{day}T03:00Z")
    return history


def text_of(page):
    """Return a page's text without tags, spaces as one."""
    return " ".join(re.sub("<[^>]+>", "", page).split())


def section(history):
    """Return the section of the page, which takes longer as a whole."""
    template = _template().environment.get_template("trend.html.jinja")
    return template.render(trend=describe_trend(history, ["ndcg@10", "coverage@10"]))


def test_the_page_shows_the_trend(history, tmp_path, monkeypatch):
    reporting.draw_nothing(monkeypatch)
    page = se.write_report(
        {"good": EVS["good"]}, tmp_path / "r.html", ["ndcg@10", "coverage@10"], history=history.path
    )
    html = page.read_text(encoding="utf-8")
    assert section(history) in html
    assert '<a href="#nights">' in html
    text = text_of(section(history))
    assert "4 nights. In the last one nDCG@10 is not significantly different from the night" in text
    assert "compared as independent samples" in text
    assert text.count("2026-11-03 03:00") == 1


def test_the_last_night_is_worse(history, tmp_path):
    history.append(EVS["poor"], "<b>poor</b>", time="2026-11-05T03:00Z")
    html = section(history)
    assert "nDCG@10 is worse than the night before:" in text_of(html)
    assert "&lt;b&gt;poor&lt;/b&gt;" in html
    page = se.write_report(EVS, tmp_path / "r.html", "ndcg@10", history=history)
    assert "history, nDCG@10 is worse than on the night before." in text_of(page.read_text("utf-8"))


def test_nights_that_do_not_compare(tmp_path):
    history = se.History(tmp_path / "h.jsonl")
    history.append(EVS["good"], "good", time="2026-11-01T03:00Z")
    assert "One night is in the history" in text_of(section(history))
    lists, truth = se.Rankings.from_topk([[0, 1]] * 3), csr_matrix([[1, 0]] * 3)
    other = se.evaluate(lists, truth, "ndcg@10", convention="ranx")
    history.append(other, "other", time="2026-11-02T03:00Z")
    text = text_of(section(history))
    assert "2 nights. The last one cannot be compared with the one before by nDCG@10." in text
    assert "because convention is ranx, and was standard" in text
    assert "not compared" in text


def test_refuses_what_has_nothing_to_show(history, tmp_path):
    with raises(InvalidDataError):
        describe_trend(history, ["mrr@3"])
    with raises(InvalidFileError):
        describe_trend(tmp_path / "none.jsonl", ["ndcg@10"])
