"""What takes a library that is not installed says which extra brings it."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

#: Calls by the extra that they take, in a Python that has none.
SCRIPT = """
import sys

for name in ("dask", "dask.distributed", "distributed", "jinja2", "matplotlib", "optuna"):
    sys.modules[name] = None

from scipy.sparse import csr_matrix

import sparse_eval as se

held_out = csr_matrix([[0, 1], [1, 0]])
lists = se.Rankings.from_topk([[0, 1], [1, 0]])
ev = se.evaluate(lists, held_out, "ndcg@2")
for extra, call in (
    ("report", lambda: se.write_report({"a": ev}, "report.html")),
    ("report", lambda: se.plots.distribution({"a": ev}, "ndcg@2")),
    ("tune", lambda: se.tune(held_out, held_out, "ndcg@1")),
    ("dask", lambda: se.evaluate(lists, held_out, "ndcg@1", client="tcp://127.0.0.1:1")),
):
    try:
        call()
    except se.errors.MissingExtraError as error:
        assert f'pip install "sparse_eval[{extra}]"' in str(error), error
    else:
        raise AssertionError(extra)
"""


@pytest.mark.slow
def test_what_is_missing_is_named(tmp_path):
    subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, check=True)
    assert not list(tmp_path.iterdir())
