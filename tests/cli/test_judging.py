"""Test the exit status of results that are not good enough."""

from __future__ import annotations

import json
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
    status, printed, _ = command(*words, "--fail-under", f"ndcg@10={reached - 0.001}")
    assert status == 0
    assert "als8" in printed or model.endswith("npz")
    status, printed, said = command(*words, "--fail-under", f"ndcg@10={reached + 0.001}")
    assert status == 3
    assert "ndcg@10" in printed
    assert f"als8.npz is not good enough: ndcg@10 is {reached:.5f}, and has to be at least" in said
    both = ("--fail-under", "ndcg@10=1", "--fail-under", "recall@10=1", "--format", "json")
    status, printed, said = command(*words, *both)
    assert status == 3
    assert json.loads(printed)
    assert "; recall@10 is" in said


def test_where_less_is_better(command: Command, folder: Path) -> None:
    words = ("score", folder / "models" / "als8.npz", "--split", folder / "split", "-m")
    words = (*words, "mean_rank")
    assert command(*words, "--fail-under", "mean_rank=80")[0] == 0
    status, _, said = command(*words, "--fail-under", "mean_rank=2")
    assert status == 3
    assert "and has to be at most 2" in said
    reached = value(folder, "mean_rank")
    assert command(*words, "--fail-under", f"mean_rank={reached!r}")[0] == 0
    assert command(*words, "--fail-under", f"mean_rank={reached - 1e-9!r}")[0] == 3


@pytest.mark.parametrize("more", [(), ("--per-user", "--format", "csv")])
def test_lists(command: Command, tmp_path: Path, more: tuple[str, ...]) -> None:
    sparse.save_npz(tmp_path / "p.npz", sparse.csr_matrix([[1, 2, 0], [0, 1, 2]]))
    sparse.save_npz(tmp_path / "v.npz", sparse.csr_matrix([[0, 1, 0], [0, 1, 1]]))
    words = ("evaluate", tmp_path / "p.npz", tmp_path / "v.npz", "-m", "mrr@2,fcp", *more)
    assert command(*words, "--fail-under", "mrr@2=0.75")[0] == 0
    status, _, said = command(*words, "--fail-under", "mrr@2=0.76")
    assert status == 3
    assert "p.npz is not good enough: mrr@2 is 0.75000, and has to be at least 0.76" in said
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
    status, _, said = command(*words, "--watch", "1", "--fail-under", "ndcg@10=0.1")
    assert status == 2
    assert "--watch has none" in said


def test_a_checkpoint_that_cannot_be_scored_counts_more(
    command: Command, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "broken.npz").write_bytes(b"")
    models = (folder / "models", tmp_path)
    words = ("score", *models, "--split", folder / "split", "-m", "ndcg@10")
    assert command(*words, "--fail-under", "ndcg@10=1")[0] == 1


def test_the_last_of_several_models(command: Command, tmp_path: Path) -> None:
    for name, ev in reporting.three().items():
        ev.save(tmp_path / name)
    good, poor = tmp_path / "good", tmp_path / "poor"
    words = ("-m", "ndcg@10", "--fail-if-worse")
    assert command("compare", poor, good, *words)[0] == 0
    best = tmp_path / "best"
    reporting.evaluate(3, 3.0).save(best)
    assert command("compare", good, poor, best, *words)[0] == 0  # whoever else is worse
    status, printed, said = command("compare", good, poor, *words)
    assert status == 3
    assert "ndcg@10" in printed
    assert "poor is worse than good by ndcg@10 (0." in said
    assert command("compare", good, poor, "-m", "ndcg@10")[0] == 0
    assert command("compare", f"a={good}", f"b={good}", *words)[0] == 0
    compared = reporting.three()["good"].compare(reporting.three()["poor"], "ndcg@10").table
    lost = compared["difference"][0]
    least = f"ndcg@10={lost + 1e-6}"
    assert command("compare", good, poor, *words, "--tolerance", least)[0] == 0
    least = f"ndcg@10={lost - 1e-6}"
    assert command("compare", good, poor, *words, "--tolerance", least)[0] == 3
    for given, message in (
        (("--tolerance", "recall@5=0.1"), "--tolerance is about recall@5, which is not computed"),
        (("--tolerance", "0.1"), "--tolerance is '0.1'; expected a metric and a number"),
        (("--tolerance", "ndcg@10=-1"), "expected a finite number of at least 0, found -1"),
    ):
        status, _, said = command("compare", good, poor, *words, *given)
        assert status == 2
        assert message in said
    status, _, said = command("compare", good, poor, "--tolerance", "ndcg@10=0.1")
    assert status == 2
    assert "--tolerance is for --fail-if-worse" in said
