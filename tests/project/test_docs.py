"""The documentation names everything there is, and what it shows runs."""

import ast
import importlib
import inspect
import json
import math
import re
import sys
import tomllib
import warnings
from operator import attrgetter
from pathlib import Path

import pytest

import sparse_eval as se
from sparse_eval.metrics import CONVENTIONS, REGISTRY, STANDARD

DOCS = Path(__file__).parents[2] / "docs"
MODULES = ("baselines", "datasets", "errors", "plots", "split", "testing", "track", "trec")
NAMES = (DOCS / "reference" / "names.md").read_text(encoding="utf-8")
#: Each signature of the page of names, in a line, by the name before it.
SIGNATURES = {
    line.partition("(")[0]: line
    for block in re.findall(r"^```python\n(.*?)^```$", NAMES, re.M | re.S)
    for line in re.sub(r"\n +", " ", block).splitlines()
}
NOTEBOOKS = sorted((DOCS / "tutorials").glob("*.ipynb"))
#: Public, and no function or class.
CONSTANTS = {"datasets.UNDATED"}


@pytest.fixture(scope="module")
def extension():
    """Return a function that imports an extension of the documentation's build."""
    sys.path.insert(0, str(DOCS / "extensions"))
    yield importlib.import_module
    sys.path.remove(str(DOCS / "extensions"))


def public_names():
    names = {name for name in se.__all__ if name not in MODULES}
    for module in MODULES:
        names |= {f"{module}.{name}" for name in getattr(se, module).__all__}
    # What is at the root too is documented there.
    return {name for name in names if name.partition(".")[2] not in se.__all__} - CONSTANTS


def test_the_reference_names_everything_public():
    text = (DOCS / "reference" / "index.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^   (\w[\w.]+)$", text, re.M)) - {"command_line"}
    of_metrics = {name for name in documented if name.startswith("metrics.")}
    assert documented - of_metrics == public_names()
    for name in of_metrics:
        assert hasattr(importlib.import_module("sparse_eval.metrics"), name.partition(".")[2])


def test_every_public_name_is_on_the_page():
    assert not [name for name in se.__all__ if not re.search(rf"[`.\n]{name}\b", NAMES)]
    functions = {name for name in public_names() if inspect.isfunction(attrgetter(name)(se))}
    assert functions <= set(SIGNATURES)


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(name):
    found = inspect.signature(attrgetter(name)(se))
    plain = (bool, int, float, str, type(None), type)  # without a default: a type
    parameters = [
        each.replace(
            annotation=each.empty,
            default=each.default if isinstance(each.default, plain) else ...,
        )
        for each in found.parameters.values()
        if each.name != "self"
    ]
    shown = str(found.replace(parameters=parameters, return_annotation=found.empty))
    assert SIGNATURES[name] == (name + shown).replace("'", '"').replace("Ellipsis", "...")
    assert len(parameters) <= 16
    assert inspect.Parameter.VAR_KEYWORD not in {each.kind for each in parameters}


def test_each_metric_has_a_formula_and_a_value_by_hand():
    formulas = tomllib.loads((DOCS / "metrics" / "formulas.toml").read_text(encoding="utf-8"))
    by_hand = tomllib.loads((DOCS / "metrics" / "by_hand.toml").read_text(encoding="utf-8"))
    assert list(formulas) == list(by_hand) == list(REGISTRY)


@pytest.mark.parametrize("name", list(REGISTRY))
def test_page_of_a_metric(name, extension):
    text = extension("metric_pages").page(REGISTRY[name])
    assert text.startswith(f"# {name}\n")
    _, _, example = text.partition("## Example")
    rows = re.findall(r"^\| `(.+?)` \|" + r" (.*?) \|" * 4 + "$", example, re.M)
    assert rows, "the example lacks an input that the metric needs"
    assert all(row[-1] != "nan" for row in rows)
    _, user_1, *_, everybody = rows[0]
    (code,) = re.findall(r"by hand:\n\n```python\n(.*?)\n```", example, re.S)
    assert f"{value_of(code):.4g}" == (user_1 or everybody)
    (code,) = re.findall(r"mean\(\)`:\n\n```python\n(.*?)\n```", example, re.S)
    names = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about a small example
        exec(code, names)  # noqa: S102 - our own page
    assert f"{names['ev'].mean()[next(iter(names['ev']))]:.4g}" == everybody


def value_of(code):
    """Return the value of the last line of some arithmetic."""
    names = {name: getattr(math, name) for name in ("log", "log2", "sqrt")}
    *steps, last = ast.parse(code).body
    assert isinstance(last, ast.Expr)
    exec(compile(ast.Module(steps, []), "by hand", "exec"), names)  # noqa: S102 - our own page
    return eval(compile(ast.Expression(last.value), "by hand", "eval"), names)  # noqa: S307


@pytest.mark.parametrize("name", [name for name in CONVENTIONS if name != STANDARD.name])
def test_page_of_a_convention(name, extension):
    text = extension("convention_pages").page(CONVENTIONS[name])
    assert text.startswith(f"# {name}\n")
    _, _, example = text.partition("## Example")
    assert len(re.findall(r"^\| `(.+?)` \| ([\d.]+) \| ([\d.]+) \|$", example, re.M)) >= 3


def test_table_of_metrics_leads_to_their_pages(extension):
    source = [(DOCS / "metrics" / "index.md").read_text(encoding="utf-8")]
    extension("metric_pages").link_names(None, "metrics/index", source)
    assert re.findall(r"^\| \[(\w+)\]\(generated/\1\.md\)", source[0], re.M) == list(REGISTRY)


def test_what_a_site_loads_and_links(extension, tmp_path):
    (tmp_path / "b.html").write_text('<h1 id="top">b</h1>')
    (tmp_path / "a.html").write_text(
        '<script src="https://elsewhere.org/x.js"></script><img src="c.png">'
        '<a href="b.html#top">b</a><a href="b.html#end">b</a><a href="d.html">d</a>'
        '<a href="https://elsewhere.org">elsewhere</a><link rel="next" href="https://e.org">'
    )
    assert extension("check_site").faults(tmp_path) == [
        "a.html loads https://elsewhere.org/x.js",
        "a.html loads c.png, which is not there",
        "a.html links to b.html#end, which has no such place",
        "a.html links to d.html, which is not there",
    ]


@pytest.mark.long
@pytest.mark.slow  # where kernels run as Python
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib").use("agg")
    monkeypatch.chdir(tmp_path)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    told = {}
    for part in code:
        if not part.startswith("%%bash"):
            exec(compile(part, str(path), "exec"), told)  # noqa: S102 - our own notebook


def test_notebooks_are_kept_without_what_they_print():
    assert len(NOTEBOOKS) >= 4
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert not any(cell.get("outputs") or cell.get("execution_count") for cell in cells)


def test_contributors_are_sent_to_files_that_exist():
    root = DOCS.parent
    named = re.findall(r"`([a-z_]+/[a-z_/]+\.py)`", (root / "CONTRIBUTING.md").read_text("utf-8"))
    folders = root, root / "sparse_eval"
    assert len(named) > 20
    assert [one for one in named if not any((f / one).exists() for f in folders)] == []
