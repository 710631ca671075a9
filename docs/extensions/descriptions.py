"""Describe each page to search engines by its first paragraph."""

from html import escape
from textwrap import shorten
from typing import Any

from docutils import nodes


def describe(_app: Any, _page: str, _template: str, context: dict[str, Any], tree: Any) -> None:
    """Add the description, unless the page has one."""
    paragraph = next(tree.findall(nodes.paragraph), None) if tree else None
    if paragraph is not None and 'name="description"' not in context.get("metatags", ""):
        text = escape(shorten(paragraph.astext(), 160, placeholder=" …"))
        context["metatags"] += f'<meta name="description" content="{text}">'


def setup(app: Any) -> dict[str, bool]:
    app.connect("html-page-context", describe)
    return {"parallel_read_safe": True}
