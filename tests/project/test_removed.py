"""Arguments and names of version 0.1: each raises an error that shows what is given instead."""

import ast
from pathlib import Path

import pytest

import sparse_eval as se
from sparse_eval.core.removed import ARGUMENTS, NAMES


def functions() -> dict[str, list[str]]:
    """Return the public functions that `removed` decorates, each with its old arguments."""
    found = {}
    for path in Path(se.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            for call in getattr(node, "decorator_list", []):
                if ast.unparse(call).startswith("removed("):
                    found[node.name] = [ast.literal_eval(name) for name in call.args]  # type: ignore[attr-defined]
    return found


CASES = [(name, argument) for name, old in functions().items() for argument in old]


@pytest.mark.parametrize(("name", "argument"), CASES)
def test_an_old_argument_shows_the_new_one(name: str, argument: str) -> None:
    with pytest.raises(TypeError) as error:
        getattr(se, name)(**{argument: None})
    said = f"{name}() has no argument {argument!r}; give {ARGUMENTS[argument]}"
    assert str(error.value) == said


def test_every_old_argument_is_one_of_a_function() -> None:
    assert {argument for _, argument in CASES} == set(ARGUMENTS)


@pytest.mark.parametrize("name", NAMES)
def test_an_old_name_shows_the_new_one(name: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(se, name)
    assert NAMES[name] in str(error.value)
