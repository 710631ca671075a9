"""Test the exit status of results that are not good enough."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
import reporting
from commands import Command
from judged_checkpoints import save_split_and_models
from scipy import sparse

import sparse_eval as se


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a split, and checkpoints of which als8 is the better one."""
    return save_split_and_models(tmp_path_factory.mktemp("judged"))


def value(folder: Path, metric: str) -> float:
    holdout = se.Holdout.load(folder / "split")
    return se.evaluate_model(folder / "models" / "als8.npz", holdout, metric)[metric]


@pytest.mark.parametrize("model", ["models/als8.npz", "models"])
def test_a_model_or_the_best_of_several(command: Command, folder: Path, model: str) -> None:
    words = ("score", folder / model, "--split", folder / "split", "-m", "ndcg@10,recall@10")
    reached = value(folder, "ndcg@10")
    assert command(*words, "--fail-under", f"ndcg@10={reached - 0.001}")[0] == 0
    both = ("--fail-under", f"ndcg@10={reached + 0.001}", "--fail-under", "recall@10=1")
    status, printed, said = command(*words, *both)
    assert status == 3
    assert "ndcg@10" in printed
    assert f"als8.npz is not good enough: ndcg@10 is {reached:.5g}, and has to be at least" in said
    assert "; recall@10 is" in said


def test_where_less_is_better(command: Command, folder: Path) -> None:
    words = ("score", folder / "models" / "als8.npz", "--split", folder / "split", "-m")
    words = (*words, "mean_rank")
    assert command(*words, "--fail-under", "mean_rank=80")[0] == 0
    status, _, said = command(*words, "--fail-under", "mean_rank=2")
    assert status == 3
    assert "and has to be at most 2" in said


def test_lists(command: Command, tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "p.npz", sparse.csr_matrix([[1, 2, 0], [0, 1, 2]]))
    sparse.save_npz(tmp_path / "v.npz", sparse.csr_matrix([[0, 1, 0], [0, 1, 1]]))
    words = ("evaluate", tmp_path / "p.npz", tmp_path / "v.npz", "-m", "mrr@2,fcp")
    assert command(*words, "--fail-under", "mrr@2=0.75")[0] == 0
    status, _, said = command(*words, "--fail-under", "mrr@2=0.76")
    assert status == 3
    assert "p.npz is not good enough: mrr@2 is 0.75, and has to be at least 0.76" in said
    sparse.save_npz(tmp_path / "p.npz", sparse.csr_matrix([[0, 1, 0], [0, 1, 0]]))
    status, _, said = command(*words, "--fail-under", "fcp=0.1")
    assert status == 3
    assert "fcp is not defined, and has to be at least 0.1" in said


def test_refuses_bounds_that_say_nothing(command: Command, folder: Path) -> None:
    words = ("score", folder / "models", "--split", folder / "split", "-m", "ndcg@10")
    for bound in ("ndcg@10", "0.1", "ndcg@10=", "ndcg@10=high", "ndcg@10=nan", "=0.1"):
        status, _, said = command(*words, "--fail-under", bound)
        assert status == 2
        assert "expected a metric and a number, as ndcg@10=0.15" in said
    status, _, said = command(*words, "--fail-under", "recall@10=0.1")
    assert status == 2
    assert "is about recall@10, which is not computed; ask for it: -m 'recall@10'" in said


@pytest.mark.parametrize(
    ("n_scored", "n_failed", "kept"), [(0, 2, False), (2, 1, False), (0, 1, True), (1, 2, True)]
)
def test_broken_checkpoints_do_not_hide_the_others(
    command: Command, folder: Path, tmp_path: Path, n_scored: int, n_failed: int, kept: bool
) -> None:
    models = tmp_path / "models"
    models.mkdir()
    for name in ("als8.npz", "none.npz")[:n_scored]:
        (models / name).write_bytes((folder / "models" / name).read_bytes())
    for name, content in (("a.npz", b""), ("z.npz", b"PK\x03\x04"))[:n_failed]:
        (models / name).write_bytes(content)
    words = ("score", models, "--split", folder / "split", "-m", "ndcg@10,recall@10")
    if kept:  # later commands resume from the table of the first one
        words += ("--out", tmp_path / "out", "--history", tmp_path / "h.jsonl")
        good = (models / "good.npz", folder / "models" / "als8.npz")
        good[0].write_bytes(good[1].read_bytes() + b"\0" * 9)
        command(*words)
        good[0].unlink()  # its row stays and is not judged
    reached = value(folder, "ndcg@10")
    bounds = {None: True, reached - 0.001: True, reached + 0.001: False}
    for (bound, is_good), most in product(bounds.items(), [None, 1, 2]):
        more = () if bound is None else ("--fail-under", f"ndcg@10={bound}")
        more += () if most is None else ("--max-failed", most)
        status, printed, said = command(*words, *more)
        if not n_scored:
            expected = 1
        elif not is_good:
            expected = 3
        else:
            expected = int(n_failed > (most or 0))
        assert status == expected, (bound, most, said)
        assert ("could not be scored" in said) == (n_failed > 0)
        assert ("als8.npz is not good enough" in said) == (expected == 3)
        for name in ("als8.npz", "none.npz")[:n_scored] + ("a.npz", "z.npz")[:n_failed]:
            assert name in printed


def test_a_negative_number_of_failures_is_refused(command: Command, folder: Path) -> None:
    words = ("score", folder / "models", "--split", folder / "split", "-m", "ndcg@10")
    assert command(*words, "--max-failed", -1)[0] == 2


def test_memory_is_for_one_checkpoint(command: Command, folder: Path) -> None:
    words = ("score", folder / "models", "--split", folder / "split", "--memory", "1GB")
    status, printed, said = command(*words)
    assert (status, printed) == (2, "")
    assert "--memory is for one checkpoint; leave it out, or score one by one" in said


@pytest.mark.parametrize(("last", "broken"), [("good", "a"), ("poor", "a"), ("poor", "z")])
def test_broken_results_do_not_hide_a_loss(
    command: Command, tmp_path: Path, broken: str, last: str
) -> None:
    results = reporting.three()
    for name, ev in (("b", "poor" if last == "good" else "good"), ("c", last)):
        results[ev].save(tmp_path / "all" / name)
    results["good"].save(tmp_path / "all" / broken)
    (tmp_path / "all" / broken / "summary.json").write_text("{}")
    words = ("compare", tmp_path / "all", "-m", "ndcg@10")
    assert command(*words)[0] == 1
    status, _, said = command(*words, "--fail-if-worse")
    assert "could not be read" in said or status == 3
    # The last result cannot be judged if it is broken.
    assert status == (3 if (last, broken) == ("poor", "a") else 1)
    assert ("c is worse than b" in said) == (status == 3)


def test_the_last_of_several_models(command: Command, tmp_path: Path) -> None:
    for name, ev in reporting.three().items():
        ev.save(tmp_path / name)
    good, poor = tmp_path / "good", tmp_path / "poor"
    words = ("-m", "ndcg@10", "--fail-if-worse")
    assert command("compare", poor, good, *words)[0] == 0
    status, printed, said = command("compare", good, poor, *words)
    assert status == 3
    assert "ndcg@10" in printed
    assert "poor is worse than good by ndcg@10 (0." in said
    compared = reporting.three()["good"].compare(reporting.three()["poor"], "ndcg@10").table
    lost = compared["difference"][0]
    least = f"ndcg@10={lost + 1e-6}"
    assert command("compare", good, poor, *words, "--tolerance", least)[0] == 0
    least = f"ndcg@10={lost - 1e-6}"
    assert command("compare", good, poor, *words, "--tolerance", least)[0] == 3
    status, _, said = command("compare", good, poor, *words, "--tolerance", "ndcg@10=-1")
    assert status == 2
    assert "expected a finite number of at least 0, found -1" in said
    status, _, said = command("compare", good, poor, "--tolerance", "ndcg@10=0.1")
    assert status == 2
    assert "--tolerance is for --fail-if-worse" in said
