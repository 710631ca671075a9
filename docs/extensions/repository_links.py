"""Redirect links from pages to the rest of the repository to pages of the site that include it.

The pages are also read in the repository, in which `docs/benchmarks/` only includes other files.
"""

from typing import Any


def lead_to_pages(_app: Any, name: str, source: list[str]) -> None:
    up = "../" * name.count("/")
    source[0] = source[0].replace(f"]({up}../benchmarks/", f"]({up}benchmarks/")


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", lead_to_pages)
    return {"parallel_read_safe": True}
