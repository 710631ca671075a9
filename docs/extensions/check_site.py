"""Check a built site: pages load nothing from other sites, and internal links have targets.

python check_site.py FOLDER
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: The attributes of elements that a browser loads by itself; it loads other links on a click.
LOADED = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "link": "href",
}
#: The relations of `link` that a browser does not load.
NOT_LOADED = {"canonical", "index", "search", "next", "prev", "author", "copyright"}


#: Parts of a style that a browser loads from other sites.
FROM_ELSEWHERE = re.compile(r"(url\(|@import)\s*[\"']?(https?:)?//")


class Page(HTMLParser):
    """The addresses that a page loads and links to, and the places in it that links may have."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        attribute = LOADED.get(tag)
        if attribute in given and given.get("rel") not in NOT_LOADED:
            self.loads.append(given[attribute])


def faults(folder: Path) -> list[str]:
    """Return a line for each fault."""
    pages = {
        path: Page(path.read_text(encoding="utf-8"))
        for path in sorted(folder.rglob("*.html"))
        if "_static" not in path.parts
    }
    found = []
    for path, page in pages.items():
        at = path.relative_to(folder)
        for address in page.loads:
            parts = urlsplit(address)
            if parts.scheme in ("http", "https") or parts.netloc:
                found.append(f"{at} loads {address}")
            elif not parts.scheme and not target(path, parts.path).exists():
                found.append(f"{at} loads {address}, which is not there")
        for address in page.links:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                continue
            aim = target(path, parts.path)
            if not aim.exists():
                found.append(f"{at} links to {address}, which is not there")
            elif "_modules" in at.parts:
                continue  # Sphinx links source code to the right page, by another module's name
            elif (
                aim in pages and parts.fragment and unquote(parts.fragment) not in pages[aim].places
            ):
                found.append(f"{at} links to {address}, which has no such place")
    return found + [
        f"{path.relative_to(folder)} loads a style or font from elsewhere"
        for path in folder.rglob("*.css")
        if FROM_ELSEWHERE.search(path.read_text(encoding="utf-8"))
    ]


def target(page: Path, address: str) -> Path:
    return (page.parent / unquote(address)).resolve() if address else page


if __name__ == "__main__":
    told = faults(Path(sys.argv[1]).resolve())
    print("\n".join(told), file=sys.stderr)
    sys.exit(bool(told))
