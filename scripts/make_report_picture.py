"""Write data/report.png: the headline of a report and its table of metrics, in a browser.

python scripts/make_report_picture.py

It needs what `pip install -e ".[full]"` installs, and Chromium or Chrome.
"""

import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

import sparse_eval as se

PICTURE = Path(__file__).parents[1] / "data" / "report.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
METRICS = ["ndcg@10", "recall@20", "mrr@20", "coverage@20"]


def main() -> None:
    """Write the report, and the picture of it."""
    with tempfile.TemporaryDirectory() as folder:
        page = se.write_report(evaluations(), Path(folder) / "report.html", title="News, May")
        photograph(page)


def evaluations() -> dict[str, se.Evaluation]:
    """Evaluate two models that weigh clicks differently, and the popularity ranking."""
    clicks = se.datasets.synthetic(n_users=20_000, n_items=10_000, seed=0)
    holdout = se.split.random(clicks, fraction=0.2, seed=0)
    parts = (holdout.train, holdout.validation, METRICS)
    found = {
        f"ALS, alpha {alpha}": se.evaluate_model(
            se.train_als(holdout.train, factors=32, alpha=alpha), *parts, keep="lists"
        )
        for alpha in (40, 1)
    }
    popular = se.Rankings.from_popularity(holdout.train, 20)
    found["popularity"] = se.evaluate(popular, *parts[1:], train=holdout.train)
    return found


def photograph(page: Path) -> None:
    """Have a browser show the page."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise SystemExit(f"there is none of {', '.join(BROWSERS)}; install one")
    # The browser's sandbox needs a user other than root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=browser, args=arguments)
        tab = chromium.new_page(viewport={"width": 1100, "height": 800})
        tab.goto(page.as_uri())
        end = tab.locator("table").first.bounding_box()
        if end is None:
            raise SystemExit("the report has no table")
        # The links to the sections of the page lead nowhere in a picture.
        tab.add_style_tag(content="nav, .skip { display: none }")
        end = tab.locator("table").first.bounding_box() or end
        clip = {"x": 0, "y": 0, "width": 1100, "height": end["y"] + end["height"] + 10}
        tab.screenshot(path=PICTURE, clip=clip, full_page=True)
        chromium.close()


if __name__ == "__main__":
    main()
