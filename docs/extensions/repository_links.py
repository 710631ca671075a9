"""Links of pages to the rest of the repository, which lead to a page of the site where one has it.

The pages are read in the repository too, where `docs/benchmarks/` holds nothing but where to look.
"""

from typing import Any


def lead_to_pages(_app: Any, name: str, source: list[str]) -> None:
    up = "../" * name.count("/")
    source[0] = source[0].replace(f"]({up}../benchmarks/", f"]({up}benchmarks/")


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", lead_to_pages)
    return {"parallel_read_safe": True}
