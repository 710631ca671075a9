"""The table of messages, and the helper that compares with it."""

import os

import pytest
from raising import TABLE, Messages, key, raises, read, written

from sparse_eval.errors import InvalidDataError


def test_the_table_has_tests_that_exist_in_their_order():
    text = TABLE.read_text("utf-8")
    assert written(read(text)) == text


def test_a_message_that_the_table_lacks_fails():
    table = Messages()
    table.writing = False
    table.known = {key(os.environ["PYTEST_CURRENT_TEST"]): ["k: expected 1", "two\n  lines"]}
    table.check("two\n  lines")
    with pytest.raises(pytest.fail.Exception, match=r"- k: expected 1\n\+ k: expected 2\n"):
        table.check("k: expected 2")


def test_attributes_differ_from_the_error():
    with pytest.raises(AssertionError, match="k: wrong"), raises(InvalidDataError, argument="n"):
        raise InvalidDataError("k: wrong", argument="k")


def test_paths_and_the_words_of_other_libraries_have_placeholders(tmp_path):
    with raises(InvalidDataError):
        try:
            float("something")
        except ValueError as error:
            raise InvalidDataError(f"{tmp_path}/a.csv: not a number ({error})") from None
