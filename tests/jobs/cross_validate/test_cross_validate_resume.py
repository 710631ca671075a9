"""Cross-validations that continue from a folder, and folders that raise an error."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import cross_cases
import pytest
from cross_cases import METRICS, MODELS, content, cross, folds, same
from failing import full, interrupted_at
from implicit.nearest_neighbours import BM25Recommender, CosineRecommender
from raising import raises, warns
from systems import need_posix

import sparse_eval as se
import sparse_eval.jobs.cross_validate as cross_validate
from sparse_eval.errors import InvalidFileError, OutputError

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return an uninterrupted cross-validation, and its folder."""
    out = tmp_path_factory.mktemp("whole")
    return cross(out=out), out


@pytest.fixture
def trained(monkeypatch):
    """Collect the factors and the seed of each training."""
    calls = []

    def counted(train, *, seed, **options):
        calls.append((options["factors"], seed))
        return se.train_als(train, seed=seed, **options)

    monkeypatch.setattr(cross_validate, "train_als", counted)
    return calls


def test_a_folder_has_the_same_numbers(whole):
    cv, out = whole
    assert same(cv, cross())
    assert [*content(out)] == ["cross_validation.jsonl"]
    text = (out / "cross_validation.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    slots = [line["slot"] for line in lines]
    assert slots[:3] == ["inputs", "fold 1", "als2, fold 1, seed 0"]
    assert len(slots) == 1 + 2 + 8
    assert lines[2]["means"]["ndcg@5"] == cv.table["ndcg@5"][0]
    assert lines[2]["parameters"] == MODELS["als2"]


def test_finished_runs_are_not_repeated(whole, tmp_path, trained):
    cv, out = whole
    before = content(out)
    assert same(cross(out=out), cv)
    assert trained == []
    assert content(out) == before
    with interrupted_at(cross_validate, "train_als", 6):
        cross(out=tmp_path)
    assert same(cross(out=tmp_path), cv)
    of_fold = [(2, 0), (2, 1), (6, 0), (6, 1)]
    assert trained == [(n, seed + shift) for shift in (0, 1000) for n, seed in of_fold]
    assert content(tmp_path) == before


def test_more_seeds_models_and_folds_add_what_is_missing(whole, tmp_path, trained):
    options = {"out": tmp_path, "splits": folds(3)}
    cross(**options | {"splits": folds(3)[:2]}, models={"als2": MODELS["als2"]}, seeds=1)
    assert trained == [(2, 0), (2, 1000)]
    assert same(cross(**options), cross(folds(3)))
    assert len(trained[2:]) == 12 - 2 + 12
    fewer = cross(**options | {"splits": folds(3)[:1]}, models={"als2": MODELS["als2"]}, seeds=[1])
    assert fewer.table["seed"].tolist() == [1]


KILLED = """
import os, signal, sys
from cross_cases import cross

write, calls, call = os.write, [], int(sys.argv[1])

def killing(file, line):
    calls.append(line)
    if len(calls) == call:
        write(file, line[: len(line) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    return write(file, line)

os.write = killing
cross(out=sys.argv[2])
"""


def test_survives_being_killed(whole, tmp_path):
    """Each run is killed when half of its n-th line is written."""
    need_posix()
    cv, out = whole
    for call in (1, 4, 3):
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(call), tmp_path],
            capture_output=True,
            check=False,
            cwd=Path(cross_cases.__file__).parent,
        )
        assert done.returncode == -signal.SIGKILL, done.stderr
    with warns():
        assert same(cross(out=tmp_path), cv)
    assert content(tmp_path) == content(out)


def test_a_full_disk_keeps_what_is_there(whole, tmp_path, monkeypatch):
    write = os.write

    def fill(file, line):
        return (full if b"fold 2, seed 1001" in line else write)(file, line)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fill)
        with raises(OutputError):
            cross(out=tmp_path)
    lines = content(tmp_path)["cross_validation.jsonl"]
    assert content(whole[1])["cross_validation.jsonl"].startswith(lines)
    assert b"fold 2, seed 1000" in lines
    assert same(cross(out=tmp_path), whole[0])


def test_refuses_the_folder_of_another(whole, trained):
    _, out = whole
    before = content(out)
    changed, held_out = folds(), folds()
    changed[0].train.data[5] += 1
    held_out[1].validation.data[0] += 1
    for options in (
        {"metrics": "ndcg@5"},
        {"metrics": [*METRICS, "mrr@5"]},
        {"convention": "rectools"},
        {"metrics": se.Protocol(METRICS, filter_seen=False)},
        {"models": MODELS | {"als2": {"factors": 3, "iterations": 2}}},
        {"models": MODELS | {"als2": lambda train, seed: se.train_als(train, factors=2)}},
        {"splits": changed},
        {"splits": held_out},
        {"splits": folds(3)},
        {"splits": folds(seed=1)},
        {"candidates": [*range(20)]},
    ):
        with raises(InvalidFileError):
            cross(**options, out=out)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cross_validate, "library_versions", lambda: {"numpy": "1.0"})
        with raises(InvalidFileError):
            cross(out=out)
    assert trained == []
    assert content(out) == before
    assert same(cross(metrics=METRICS[::-1], out=out), cross(metrics=METRICS[::-1]))


def test_a_changed_line_raises_an_error(whole, tmp_path):
    path = tmp_path / "cross_validation.jsonl"
    text = (whole[1] / path.name).read_text(encoding="utf-8")
    path.write_text(text.replace('"n_users": ', '"n_users": 1', 1), encoding="utf-8")
    with raises(InvalidFileError, line=3):
        cross(out=tmp_path)


@dataclass
class Trainer:
    factors: int

    def __call__(self, train, seed):
        return se.train_als(train, factors=self.factors, seed=seed)


def neighbours(kind):
    return lambda train: se.train_model(kind(20), train)


@pytest.mark.parametrize(
    "trainers",
    [
        (Trainer(4), Trainer(32)),
        (Trainer(4).__call__, Trainer(32).__call__),
        (neighbours(CosineRecommender), neighbours(BM25Recommender)),
    ],
    ids=["object", "method", "closure"],
)
def test_a_changed_function_raises_an_error(tmp_path, trainers):
    one, other = trainers
    options = {"metrics": "ndcg@5", "seeds": 1, "out": tmp_path}
    first = cross(models={"m": one}, **options)
    before = content(tmp_path)
    assert same(cross(models={"m": one}, **options), first)
    with raises(InvalidFileError):
        cross(models={"m": other}, **options)
    assert content(tmp_path) == before
    both = cross(models={"m": one, "changed": other}, **options)
    alone = cross(models={"changed": other}, **options | {"out": None})
    assert both.table[both.table["model"] == "changed"]["ndcg@5"].tolist() == (
        alone.table["ndcg@5"].tolist()
    )


def test_one_run_of_each_function_is_repeated(tmp_path):
    calls = []

    def train(matrix, seed):
        calls.append(seed)
        return se.baselines.random(matrix, seed=seed)

    cv = cross(models={"random": train}, out=tmp_path)
    assert calls == [0, 1, 1000, 1001]
    assert same(cross(models={"random": train}, out=tmp_path), cv)
    assert calls[4:] == [0]
    cross(models={"random": train}, seeds=3, out=tmp_path)
    assert calls[5:] == [0, 2, 1002]
