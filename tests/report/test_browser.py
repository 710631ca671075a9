"""Test the report in a real browser: text, layout, contrast, keyboard, screenshot and print."""

import os
import shutil
from itertools import pairwise

import pytest
import reporting

import sparse_eval as se

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
BROWSER = next(filter(None, map(shutil.which, NAMES)), None)

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(BROWSER is None, reason=f"needs one of {', '.join(NAMES)}"),
]

DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "device_scale_factor": 2, "is_mobile": True}
SCREENS = {"desktop": DESKTOP, "phone": PHONE, "dark": DESKTOP | {"color_scheme": "dark"}}


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    models = reporting.three(odd=True)
    models |= dict(zip(reporting.ODD[3:], models.values(), strict=False))
    metrics = ["ndcg@10", *(name for name in models[reporting.ODD[0]] if name != "ndcg@10")]
    return se.write_report(models, folder / "report.html", metrics)


@pytest.fixture(scope="module")
def browser():
    # The sandbox of the browser needs a user other than root.
    as_root = hasattr(os, "geteuid") and os.geteuid() == 0
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox"] if as_root else []
        )
        yield browser
        browser.close()


@pytest.fixture
def page(request, browser, page_file):
    """Open the page; it must send no requests, open no dialogs and log nothing."""
    context = browser.new_context(**SCREENS[request.param])
    context.set_default_timeout(300_000)  # on a busy machine a page takes more than the usual 30 s
    page = context.new_page()
    messages = []
    requests = []
    page.on("dialog", lambda dialog: (messages.append(dialog.message), dialog.dismiss()))
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda sent: requests.append(sent.url))
    page.goto(page_file.as_uri())
    yield page
    assert messages == []
    assert requests == [page_file.as_uri()]
    context.close()


@pytest.mark.parametrize("page", ["desktop", "phone"], indirect=True)
def test_odd_labels_stay_text_within_the_screen(page):
    assert page.locator("script").count() == 0
    assert "<script>alert(1)</script>" in page.locator(".answer").inner_text()
    # A Hebrew name runs from right to left and does not affect the text around it.
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    hebrew = page.locator("bdi", has_text="שלום עולם").first
    assert hebrew.evaluate("e => getComputedStyle(e).unicodeBidi") == "isolate"
    width, screen = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert width <= screen


#: WCAG 2 contrast of each text with the first opaque background behind it.
CONTRASTS = """
() => {
  const parse = text => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
    .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = element => {
    for (let e = element; e; e = e.parentElement) {
      const found = parse(getComputedStyle(e).backgroundColor);
      if (found.length < 4 || found[3] === 1) return found;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll('p, td, th, li, a, summary, dd, dt, figcaption')]
    .filter(e => e.textContent.trim() && e.getClientRects().length)
    .map(e => {
      const style = getComputedStyle(e);
      const [a, b] = [light(parse(style.color)), light(ground(e))].sort((x, y) => y - x);
      return [(a + 0.05) / (b + 0.05), e.tagName + ': ' + e.textContent.slice(0, 40)];
    });
}
"""


@pytest.mark.parametrize("page", ["desktop", "dark"], indirect=True)
def test_text_has_enough_contrast(page):
    contrasts = page.evaluate(CONTRASTS)
    assert len(contrasts) > 200
    assert [text for ratio, text in contrasts if ratio < 4.5] == []


@pytest.mark.parametrize("page", ["desktop"], indirect=True)
def test_works_with_keyboard_and_screen_reader(page):
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    page.keyboard.press("Enter")
    page.wait_for_url("**#main")  # a busy browser takes a moment
    folded = page.locator("summary").filter(has_text="What the metrics mean")
    folded.focus()
    page.keyboard.press("Enter")
    assert page.locator("details[open] > summary", has_text="What the metrics mean").count() == 1
    # Scrolling regions can be focused, charts have names, and headings skip no level.
    for region in page.locator(".scroll").all():
        assert region.get_attribute("tabindex") == "0"
        assert region.get_attribute("role") == "region"
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true; })")
    charts = page.get_by_role("img")
    assert charts.count() == page.locator("figure img[alt]").count() == 2
    assert page.locator("svg:not([aria-hidden])").count() == 0
    levels = page.locator("h1, h2, h3, h4").evaluate_all("all => all.map(e => +e.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.locator("th:not([scope])").count() == 0


@pytest.mark.long
@pytest.mark.parametrize("page", ["dark"], indirect=True)
def test_prints_in_black_without_navigation(page):
    page.emulate_media(media="print")
    assert page.locator("nav").is_hidden()
    assert page.locator("body").evaluate("e => getComputedStyle(e).color") == "rgb(0, 0, 0)"
