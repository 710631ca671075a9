"""Locks on files and folders, and locks between threads, also if a process is forked."""

import errno
import os
import signal
import subprocess
import sys
from importlib import import_module
from pkgutil import walk_packages
from threading import Event, Lock, RLock, Thread, current_thread, main_thread

import numpy as np
import pytest
from filelock import lock_descriptor
from raising import raises
from scipy.sparse import csr_matrix
from systems import need_posix

import sparse_eval as se
from sparse_eval.core.atomic_files import locked, locked_folder
from sparse_eval.errors import OutputError
from sparse_eval.jobs.ledger import Ledger

HOLDS = """
import sys
from pathlib import Path
from sparse_eval.core.atomic_files import locked, locked_folder

folder = Path(sys.argv[1])
with locked_folder(folder), (folder / "rows").open("ab") as file, locked(file):
    print("locked", flush=True)
    sys.stdin.read()
"""


def is_free(folder):
    """Return whether a file of a folder is not locked; the folder raises an error if it is."""
    with locked_folder(folder), (folder / "rows").open("rb") as file:
        return lock_descriptor(file.fileno(), blocking=False)


def test_locks_end_with_their_process(tmp_path):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", HOLDS, tmp_path], **pipes) as other:
        assert other.stdout.readline().split() == [b"locked"]
        with raises(OutputError), locked_folder(tmp_path):
            pass
        with (tmp_path / "rows").open("rb") as file:
            assert not lock_descriptor(file.fileno(), blocking=False)
        other.kill()
        other.wait()
        assert is_free(tmp_path)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # has threads
def test_a_forked_process_keeps_no_lock(tmp_path):
    need_posix()
    with (tmp_path / "rows").open("ab") as file, locked_folder(tmp_path), locked(file):
        child = os.fork()
        if not child:
            signal.pause()
    try:
        assert is_free(tmp_path)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_thread_does_not_share_the_lock_of_another(tmp_path):
    def lock():
        with raises(OutputError), locked_folder(tmp_path):
            pass
        found.append("locked")

    found = []
    with locked_folder(tmp_path):
        thread = Thread(target=lock)
        thread.start()
        thread.join()
    assert found == ["locked"]


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_used_without_them(tmp_path, monkeypatch, number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(pytest.importorskip("fcntl"), "flock", fail)
    with Ledger.opened(tmp_path, "test", {}) as ledger, Ledger.opened(tmp_path, "other", {}):
        ledger.append("a")
    assert [*Ledger(tmp_path / "test.jsonl", "test").rows] == ["inputs", "a"]


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # has threads
def test_a_forked_process_does_not_wait_for_threads_that_it_lacks():
    need_posix()
    holds, ends = Event(), Event()

    def score(users):
        if current_thread() is not main_thread():
            holds.set()
            ends.wait()
        return np.eye(4, 6)[users]

    def work():
        se.evaluate_model(score, csr_matrix(np.eye(4, 6)), csr_matrix(np.eye(4, 6, 1)), "ndcg@2")

    work()  # compiled, and imported
    thread = Thread(target=work)
    thread.start()
    holds.wait()
    child = os.fork()
    if not child:
        try:
            signal.alarm(120)  # ends a child that waits for the lock
            work()
            os._exit(0)
        finally:
            os._exit(1)
    ends.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_no_module_has_a_lock_that_forked_processes_inherit():
    plain = (type(Lock()), type(RLock()))
    for module in walk_packages(se.__path__, "sparse_eval."):
        if module.name.endswith(("__main__", "evaluation.spark")):
            continue
        members = vars(import_module(module.name)).items()
        found = [name for name, value in members if isinstance(value, plain)]
        assert not found, (module.name, found)
