"""Arguments and names of version 0.1: each raises an error that shows what is given instead."""

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest
from raising import raises

import sparse_eval as se
from sparse_eval.core import removed


def functions() -> list[Callable[..., Any]]:
    """Return the public functions and methods that have old arguments."""
    public = [getattr(se, name) for name in se.__all__]
    methods = [m for one in public for _, m in inspect.getmembers(one, inspect.isroutine)]
    codes = ((one, getattr(one, "__code__", None)) for one in (*public, *methods))
    return [one for one, code in codes if code and code.co_filename == removed.__file__]


CASES = {
    (one.__qualname__.removesuffix(".__init__"), argument): (one, instead)
    for one in functions()
    for argument, instead in inspect.getclosurevars(
        getattr(one, "__func__", one)
    ).nonlocals["table"].items()
}  # fmt: skip


@pytest.mark.parametrize(("called", "argument"), CASES)
def test_an_old_argument_shows_one_that_there_is(called: str, argument: str) -> None:
    function, instead = CASES[called, argument]
    with raises(TypeError):
        function(**{argument: None})
    parameters = inspect.signature(function).parameters
    assert argument not in parameters
    assert set(re.findall(r"^(\w+)=", instead)) <= set(parameters)


def test_every_old_argument_is_that_of_a_function() -> None:
    assert set(removed.ARGUMENTS) <= {argument for _, argument in CASES}
    assert {"evaluate", "evaluate_model", "top_k", "tune"} <= {called for called, _ in CASES}


@pytest.mark.parametrize("name", removed.NAMES)
def test_an_old_name_shows_the_new_one(name: str) -> None:
    with pytest.raises(AttributeError) as error:
        getattr(se, name)
    assert removed.NAMES[name] in str(error.value)
