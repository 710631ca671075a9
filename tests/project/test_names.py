"""The page with the whole public API shows every name, with the signatures that the code has."""

import inspect
import re
from operator import attrgetter
from pathlib import Path

import pytest

import sparse_eval as se

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "names.md").read_text(encoding="utf-8")
MODULES = ("baselines", "datasets", "plots", "split", "testing", "track", "trec")
#: Each signature of the page, in a line, by the name before it.
SHOWN = {
    line.partition("(")[0]: line
    for block in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
    for line in re.sub(r"\n +", " ", block).splitlines()
}


def signature(name):
    """Return what a call is given, with `...` for defaults that are no plain values."""
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
    return found.replace(parameters=parameters, return_annotation=found.empty)


@pytest.mark.parametrize("name", SHOWN)
def test_signature(name):
    found = signature(name)
    assert SHOWN[name] == (name + str(found)).replace("'", '"').replace("Ellipsis", "...")
    assert len(found.parameters) <= 14
    assert inspect.Parameter.VAR_KEYWORD not in {each.kind for each in found.parameters.values()}


def test_every_public_name_is_on_the_page():
    assert not [name for name in se.__all__ if not re.search(rf"[`.\n]{name}\b", PAGE)]
    functions = {name for name in se.__all__ if inspect.isfunction(getattr(se, name))} | {
        f"{module}.{name}"
        for module in MODULES
        for name in getattr(se, module).__all__
        if inspect.isfunction(getattr(getattr(se, module), name))
    }
    assert functions <= set(SHOWN)
