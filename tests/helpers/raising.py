"""`raises` and `warns`: check the class and attributes of an error, and its message by a table.

Tests assert the class and attributes of errors. ``tests/messages.txt`` lists the messages of all
errors and warnings, by test. A message that is not in this table fails its test. ``pytest
--write-messages`` writes the messages of the selected tests to the table.
"""

import os
import re
import tempfile
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import currently_in_test_context

import sparse_eval

TABLE = Path(__file__).parents[1] / "messages.txt"
_PROJECT = TABLE.parents[1]
_PACKAGE = str(Path(sparse_eval.__file__).parent)

_HEADER = """\
# The messages of errors and warnings that tests cause, by test, each once and in order. A test
# fails if its message is not here. Rewrite the table with: pytest --write-messages [TESTS]
"""

_TMP = re.escape(tempfile.gettempdir())

#: Text that differs between runs or machines, and its placeholder in the table.
_PLACEHOLDERS = [
    (rf"({_TMP}|[^\s'\"(]*)/pytest-of-[^/\s]+/pytest-\w+(/popen-gw\d+)?/[^/\s'\",:;)]+", "<tmp>"),
    (rf"{_TMP}/(tmp\w+|[\w-]*\w{{8}}\b)", "<tmp>"),
    (r"\bkernels_\w+", "kernels_<digest>"),
    (r"inproc://[\d./]+", "inproc://<address>"),
    (r"(a readable Parquet file|its columns promise|of its columns) \(.*\)", r"\1 (<cause>)"),
    (r"\b(127\.0\.0\.1|localhost):\d+", r"\1:<port>"),
    # Of models that were trained, which depends on the processor.
    (
        r"(has \S+) [\d.]*\d, but was repeated with [\d.]*\d",
        r"\1 <value>, but was repeated with <value>",
    ),
    (r"worker \S+ \(process \d+\)", "worker <host> (process <pid>)"),
    (r"\{'python': '3[^{}]*\}", "{<versions>}"),
    (rf"(?<![\d.]){re.escape(version('sparse_eval'))}(?![\d.])", "<version>"),
]


@contextmanager
def raises(kind, **attributes):
    """Assert that an error of a class is raised, with these attributes and a known message."""
    __tracebackhide__ = True
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    found = {name: getattr(error, name) for name in attributes}
    assert found == attributes, error
    messages.check(_normalised(str(error), error))


@contextmanager
def warns(kind=UserWarning):
    """Assert that a warning of a class is issued, and that all of the class are known."""
    __tracebackhide__ = True
    with pytest.warns(kind) as caught:
        yield caught
    texts = [str(one.message) for one in caught if issubclass(one.category, kind)]
    messages.check("\n".join(dict.fromkeys(map(_normalised, texts))))


class Messages:
    """The table, and the messages of this run."""

    def __init__(self):
        self.known = read(TABLE.read_text("utf-8")) if TABLE.exists() else {}
        self.writing = self.cases = False  # of the table; whether single cases were asked for
        self.partial = set()  #: tests of which not every case has passed
        self._found = {}

    def started(self, test):
        """Note that a test runs, with or without messages."""
        self._found.setdefault(key(test), {})

    def check(self, message):
        """Fail unless the table has the message for the test that runs now."""
        __tracebackhide__ = True
        if currently_in_test_context():  # random examples have random messages
            return
        file, function = test = key(os.environ["PYTEST_CURRENT_TEST"])
        self._found.setdefault(test, {})[message] = None
        known = self.known.get(test, [])
        if not self.writing and message not in known:
            expected = "".join(f"- {line}\n" for line in get_close_matches(message, known, 1, 0))
            pytest.fail(
                f"{file}::{function}: a message is not in {TABLE.name}\n{expected}+ {message}\n"
                f"To accept it: pytest --write-messages {file}"
            )

    def write(self):
        """Write the table with the messages of the tests that ran; drop tests that are gone."""
        table = {test: found for test, found in self.known.items() if test not in self._found}
        for test, found in self._found.items():
            before = self.known.get(test, []) if test in self.partial else []
            table[test] = list(dict.fromkeys([*before, *found]))
        TABLE.write_text(written(table), "utf-8")


def key(test):
    """Return the file and the function of a test from its id."""
    file, _, function = test.partition("::")
    return file, re.split(r"[\[ ]", function)[0]


def read(text):
    """Read the table."""
    table = {}
    file = ""
    found = []
    for line in text.splitlines():
        if line.startswith("      | "):
            found[-1] += "\n" + line[8:]
        elif line.startswith("    "):
            found.append(line[4:])
        elif line.startswith("  "):
            found = table.setdefault((file, line[2:]), [])
        elif not line.startswith("#"):
            file = line or file
    return table


def written(table):
    """Return the text of a table, without tests that do not exist, in the order of the tests."""
    lines = [_HEADER]
    for file in sorted({file for file, _ in table}):
        functions = [function for function in _tests_of(file) if table.get((file, function))]
        lines += [f"\n{file}\n"] if functions else []
        for function in functions:
            found = (message.replace("\n", "\n      | ") for message in table[file, function])
            lines += [f"  {function}\n", *(f"    {message}\n" for message in found)]
    return "".join(lines)


def _tests_of(file):
    path = _PROJECT / file
    text = path.read_text("utf-8") if path.exists() else ""
    return list(dict.fromkeys(re.findall(r"^(?:async )?def (\w+)\(", text, re.MULTILINE)))


def _normalised(text, error=None):
    """Return a message with placeholders for what differs between runs, versions and machines."""
    for cause in _causes(error):
        text = text.replace(cause, "<cause>")
    for pattern, placeholder in _PLACEHOLDERS:
        text = re.sub(pattern, placeholder, text)
    lines = "".join(
        sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1] for sign in text
    )
    return "\n".join(line.rstrip() for line in lines.splitlines()) or "(no message)"


def _causes(error):
    """Return what other libraries, whose wording differs between versions, say in a message."""
    seen = {id(error)}  # a chain of errors may be a circle
    while error is not None and (error := error.__cause__ or error.__context__) is not None:
        if id(error) in seen:
            return
        seen.add(id(error))
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        is_ours = trace is None or trace.tb_frame.f_code.co_filename.startswith(_PACKAGE)
        if not is_ours or type(error).__module__.startswith("pyarrow"):
            for text in (str(error), " ".join(str(error).splitlines())):
                if len(text) > 8:
                    yield text


messages = Messages()
