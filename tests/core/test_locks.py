"""Locks between threads, if a process is forked while another thread holds a lock."""

import subprocess
import sys
from importlib import import_module
from pkgutil import walk_packages
from threading import Lock, RLock

import pytest
from systems import need_posix

import sparse_eval

#: A thread holds the lock while the process is forked; the child needs the lock too.
FORKED = """
import os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")  # about forks of processes with threads
import numpy as np
from scipy.sparse import csr_matrix
import sparse_eval as se

train, held_out = csr_matrix(np.eye(4, 6)), csr_matrix(np.eye(4, 6, 1))
scores = np.random.default_rng(0).random((4, 6))
holds, ends = threading.Event(), threading.Event()

def score(users):
    if threading.current_thread() is not threading.main_thread():
        holds.set()
        ends.wait()
    return scores[users]

def work():
    se.evaluate_model(score, train, held_out, "ndcg@2")

work()  # compiled, and imported
thread = threading.Thread(target=work)
thread.start()
holds.wait()
child = os.fork()
if not child:
    work()
    os._exit(0)
ends.set()
thread.join()
for _ in range(1200):
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        sys.exit(status)
    time.sleep(0.1)
os.kill(child, signal.SIGKILL)
sys.exit("the child waits for the lock")
"""


@pytest.mark.long
def test_a_forked_process_does_not_wait_for_threads_that_it_lacks():
    need_posix()
    subprocess.run([sys.executable, "-c", FORKED], check=True)


def test_no_module_has_a_lock_that_forked_processes_inherit():
    plain = (type(Lock()), type(RLock()))
    for module in walk_packages(sparse_eval.__path__, "sparse_eval."):
        if module.name.endswith(("__main__", "evaluation.spark")):
            continue
        found = [name for name, value in vars(import_module(module.name)).items()
                 if isinstance(value, plain)]  # fmt: skip
        assert not found, (module.name, found)
