"""Run the Python examples of a page, and show below each one its output and its charts.

The examples of a page follow one another: they share their names and a temporary folder.
"""

import json
import re
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

EXAMPLE = re.compile(r"^```python\n(.*?)^```$", re.M | re.S)
#: The pages whose examples run. Pages of metrics and conventions show values in another way.
PAGES = re.compile(r"(guide|coming_from)/.*")
#: The folder of the charts, below the folder of the pages.
CHARTS = "_build/charts"

#: Reads a list of examples in JSON, runs them, and prints the list of their outputs. It draws each
#: chart into the folder in its argument, with the number of the example in the file name.
RUN = """
import contextlib, io, json, sys, warnings
import matplotlib
import matplotlib.pyplot as plt

matplotlib.use("svg")
warnings.simplefilter("ignore")
names, printed = {"__name__": "__main__"}, []
for number, code in enumerate(json.load(sys.stdin)):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, "example", "exec"), names)
    printed.append(out.getvalue())
    for figure in plt.get_fignums():
        plt.figure(figure).savefig(f"{sys.argv[1]}-{number}.svg", bbox_inches="tight")
        plt.close(figure)
json.dump(printed, sys.stdout)
"""


def outputs(examples: list[str], charts: Path) -> list[str]:
    """Return the text that each example prints, run in order in one new process."""
    charts.parent.mkdir(parents=True, exist_ok=True)
    for old in charts.parent.glob(f"{charts.name}-*.svg"):
        old.unlink()
    with TemporaryDirectory() as folder:
        run = subprocess.run(  # noqa: S603 - our own pages
            [sys.executable, "-c", RUN, str(charts)],
            input=json.dumps(examples),
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return list(json.loads(run.stdout))


def add_outputs(app: Any, page: str, source: list[str]) -> None:
    """Insert the output and the chart of each example below its code."""
    examples = EXAMPLE.findall(source[0])
    if not examples or not PAGES.fullmatch(page):
        return
    charts = f"{CHARTS}/{page.replace('/', '-')}"
    shown = []
    for number, text in enumerate(outputs(examples, Path(app.srcdir, charts))):
        block = ""
        if text.strip():
            block += f"\n\n```text\n{text.rstrip()}\n```"
        if Path(app.srcdir, f"{charts}-{number}.svg").exists():
            block += f"\n\n![The chart of the example above](/{charts}-{number}.svg)"
        shown.append(block)
    blocks = iter(shown)
    source[0] = EXAMPLE.sub(lambda example: example[0] + next(blocks), source[0])


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", add_outputs)
    return {"parallel_read_safe": True}
