"""Locks between threads, if a process is forked while another thread holds a lock."""

import os
import signal
from importlib import import_module
from pkgutil import walk_packages
from threading import Event, Lock, RLock, Thread, current_thread, main_thread

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from systems import need_posix

import sparse_eval as se


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
