"""Fixtures and paths that several tests share."""

import os
import re
import signal
import sys
import warnings
from pathlib import Path
from unittest import mock

import pytest
from fingerprints import fingerprint
from hypothesis import HealthCheck, settings
from raising import key, messages

from sparse_eval.cli import main
from sparse_eval.cli.compile import _calls
from sparse_eval.errors import MissingExtraError
from sparse_eval.kernels.jit import INTERPRETED
from sparse_eval.metrics import REGISTRY

# A shell that runs the tests in the background has Ctrl-C ignored, here and in all they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A kernel's first call compiles it, which no deadline should count.
settings.register_profile(
    "full", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
fewer = min(settings().max_examples, 20)
settings.register_profile("default", settings.get_profile("full"), max_examples=fewer)
settings.load_profile("default")


def pytest_addoption(parser):
    group = parser.getgroup("fuzz", "fuzzers (tests/fuzz)")
    group.addoption("--fuzz-seconds", type=float, help="time of each, in place of its N_TRIES")
    group.addoption("--fuzz-seed", type=int, default=0, help="what they try")
    group.addoption("--fuzz-first", type=int, default=0, help="number of the first try")
    parser.addoption(
        "--write-messages",
        action="store_true",
        help="write the messages of errors to tests/messages.txt; without -n",
    )


def pytest_configure(config):
    messages.writing = config.getoption("--write-messages")
    messages.cases = any("[" in argument for argument in config.args)
    if messages.writing and config.getoption("numprocesses", None):
        raise pytest.UsageError("--write-messages works in one process; leave out -n")


def pytest_sessionstart():
    """Compile kernels from another end in each worker, so that few are compiled twice."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker in ("gw0", "gw1") and not INTERPRETED:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about data that nobody looks at
            calls = list(_calls())
            for call in calls if worker == "gw0" else reversed(calls):
                call()


def pytest_deselected(items):
    messages.partial.update(key(item.nodeid) for item in items)


def pytest_runtest_logreport(report):
    messages.started(report.nodeid)
    if not report.passed or messages.cases:
        messages.partial.add(key(report.nodeid))


def pytest_sessionfinish(exitstatus):
    if messages.writing and exitstatus < pytest.ExitCode.INTERRUPTED:
        messages.write()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Skip a test of an extra that only ``scripts/test --full`` installs."""
    try:
        return (yield)
    except MissingExtraError as error:
        pytest.skip(str(error))


_SHARED = Path(__file__).parents[2] / "shared" / "data" / "gowalla"


_METRICS = dict(REGISTRY)


@pytest.fixture(autouse=True)
def _close_figures():
    """Close the figures of a test: Matplotlib warns of many that are open."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture(autouse=True)
def _registry():
    """Forget what a test registers, and what an example registered before in the same process."""
    with mock.patch.dict(REGISTRY, _METRICS, clear=True):
        yield


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Fail if a test changes the data of a fixture that others share, whatever their order."""
    value = yield
    if fixturedef.scope != "function" and (before := fingerprint(value)):

        def check():
            assert fingerprint(value) == before, f"a test changed the data of {fixturedef.argname}"

        request.addfinalizer(check)
    return value


@pytest.fixture(scope="session")
def gowalla():
    """Return the folder of the real Gowalla split."""
    if not _SHARED.is_dir():
        pytest.skip("the Gowalla split is not beside the project (../shared/data/gowalla)")
    return _SHARED


@pytest.fixture
def write(tmp_path):
    """Write a file, and return its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def command(capsys):
    """Run a command in this process: its status, what it printed, what it said."""

    def run(*words):
        with pytest.raises(SystemExit) as stop:
            main([str(word) for word in words])
        printed = capsys.readouterr()
        if missing := re.search(r'needs .*: pip install "sparse_eval\[\w+\]"', printed.err):
            pytest.skip(missing[0])
        return int(stop.value.code or 0), printed.out, printed.err

    return run
