"""Errors: what they are, and that they can be pickled, so that workers can return them."""

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

from sparse_eval import errors
from sparse_eval.errors import InvalidFileError

CLASSES = [getattr(errors, name) for name in errors.__all__]
OF_FILES = [kind for kind in CLASSES if issubclass(kind, InvalidFileError)]


def check_survives(error):
    error.add_note("while reading")
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301
        assert type(other) is type(error)
        assert str(other) == str(error)
        assert other.args == error.args
        assert vars(other) == vars(error)


@pytest.mark.parametrize("kind", CLASSES)
def test_attributes_are_kept(kind):
    error = kind("what", argument="the train matrix", metric="map", path="a.npz", hint="do this")
    assert (error.argument, error.metric, error.path) == ("train", "map", Path("a.npz"))
    assert str(error).endswith("what; do this")
    check_survives(kind("where", row=np.int32(3), column="item", user=7))
    assert type(kind("where", row=np.int32(3)).row) is int


@pytest.mark.parametrize("kind", OF_FILES)
def test_errors_of_files_keep_their_place(kind):
    for path, line, place in (("./a//b.csv", None, "./a//b.csv"), ("b.csv", 7, "b.csv, line 7")):
        error = kind("expected two fields", path, line)
        assert str(error) == f"{place}: expected two fields"
        assert (error.path, error.line) == (Path(path), line)
        check_survives(error)
    told = kind(str(error))
    assert str(told) == "b.csv, line 7: expected two fields"
    assert (told.path, told.line) == (None, None)
