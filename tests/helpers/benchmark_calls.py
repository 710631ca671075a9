"""Call functions of the benchmarks in new processes, as the benchmarks do."""

import json
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def call(target, *arguments, python=sys.executable):
    # -P: the libraries must not import the benchmarks' modules for theirs.
    texts = [json.dumps(argument, default=str) for argument in arguments]
    command = [python, "-P", BENCHMARKS / "harness" / "call.py", target, *texts]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
