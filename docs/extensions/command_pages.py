"""Write the page of the command line from typer's description, before Sphinx reads the page."""

from pathlib import Path
from typing import Any

import typer
from metric_pages import write
from typer.cli import get_docs_for_click

from sparse_eval.cli.commands import app

PAGE = Path(__file__).parents[1] / "reference" / "command_line.md"


def write_page(_app: Any = None) -> None:
    command = typer.main.get_command(app)
    for one in getattr(command, "commands", {}).values():
        for parameter in one.params:
            parameter.hidden = False
    text = get_docs_for_click(
        obj=command, ctx=typer.Context(command), name="sparse-eval", title="Command line"
    )
    for name, one in getattr(command, "commands", {}).items():  # typer cuts them short
        whole = " ".join((one.help or "").partition("\n\n")[0].split())
        text = text.replace(f"* `{name}`: {one.get_short_help_str()}\n", f"* `{name}`: {whole}\n")
    write(PAGE, text)


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write_page)
    return {"parallel_read_safe": True}
