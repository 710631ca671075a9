"""Cross-validations that continue from a folder, and folders that they refuse."""

import shutil
from functools import partial
from pathlib import Path

import pytest
from cross_cases import METRICS, MODELS, content, cross, folds, same
from failing import full, interrupted_at
from killed import run_killed
from raising import raises

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

    def counted(train, **options):
        calls.append((options["factors"], options["seed"]))
        return se.train_als(train, **options)

    monkeypatch.setattr(cross_validate, "train_als", counted)
    return calls


def test_a_folder_has_the_same_numbers(whole):
    cv, out = whole
    assert same(cv, cross())
    assert same(se.CrossValidation.load(str(out)), cv)
    names = {path.name for path in out.iterdir()} - {".lock"}
    assert len(names) == 9
    assert {"cross_validation.jsonl", "als 6%2F%CE%B1=1-fold-2-seed-3"} < names
    run = se.Evaluation.load(out / "als2-fold-2-seed-3")
    assert run.about["model"] == "als2"
    assert run["ndcg@5"] == cv.table["ndcg@5"][5]


def test_finished_runs_are_not_repeated(whole, tmp_path, trained):
    cv, out = whole
    before = content(out)
    assert same(cross(out=out), cv)
    assert trained == []
    assert content(out) == before
    with interrupted_at(cross_validate, "train_als", 6):
        cross(out=tmp_path)
    with raises(InvalidFileError):
        se.CrossValidation.load(tmp_path)
    assert same(cross(out=tmp_path), cv)
    assert trained == [(2, 0), (2, 1), (6, 0), (6, 1), (2, 2), (2, 3), (6, 2), (6, 3)]
    assert content(tmp_path) == before


KILLED = """
from cross_cases import cross

cross(out=Path(sys.argv[1]))
"""


@pytest.mark.long
def test_survives_being_killed(whole, tmp_path):
    """Each run is killed before it moves its n-th file to its place."""
    cv, out = whole
    for call in (13, 7):
        run_killed(KILLED, call, tmp_path)
    assert same(cross(out=tmp_path), cv)
    assert content(tmp_path) == content(out)


@pytest.mark.parametrize("call", [1, 3, 14])
def test_an_interrupt_at_any_file(whole, tmp_path, call):
    with interrupted_at(Path, "replace", call):
        cross(out=tmp_path)
    assert not list(tmp_path.rglob(".*.*"))  # no temporary file
    cv, out = whole
    assert same(cross(out=tmp_path), cv)
    assert content(tmp_path) == content(out)


def test_a_full_disk_keeps_what_is_there(whole, tmp_path, monkeypatch):
    write = Path.write_bytes

    def fill(path, data):
        return (full if "als 6" in str(path) else write)(path, data)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", fill)
        with raises(OutputError):
            cross(out=tmp_path)
    assert (tmp_path / "als2-fold-1-seed-1" / "summary.json").exists()
    assert same(cross(out=tmp_path), whole[0])


def test_refuses_the_folder_of_another(whole, trained):
    _, out = whole
    before = content(out)
    changed = folds()
    changed[0].train.data[5] += 1
    for options in (
        {"metrics": "ndcg@5"},
        {"seeds": 3},
        {"convention": "rectools"},
        {"metrics": se.Protocol(METRICS, filter_seen=False)},
        {"models": {"als2": MODELS["als2"]}},
        {"models": MODELS | {"als2": {"factors": 3, "iterations": 2}}},
        {"splits": changed},
        {"splits": folds()[:1]},
        {"splits": [*folds(), folds()[0]]},
    ):
        with raises(InvalidFileError):
            cross(**options, out=out)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cross_validate, "library_versions", lambda: {"numpy": "1.0"})
        with raises(InvalidFileError):
            cross(out=out)
    assert trained == []
    assert content(out) == before


def test_a_damaged_run_is_not_loaded_and_runs_again(whole, tmp_path, trained):
    cv, out = whole
    copied = tmp_path / "copied"
    shutil.copytree(out, copied)
    # A whole evaluation of another run.
    one, other = (copied / f"als2-fold-1-seed-{seed}" for seed in (0, 1))
    shutil.rmtree(one)
    shutil.copytree(other, one)
    with raises(InvalidFileError):
        se.CrossValidation.load(copied)
    assert same(cross(out=copied), cv)
    assert trained == [(2, 0)]
    assert same(se.CrossValidation.load(copied), cv)
    (copied / "cross_validation.jsonl").unlink()
    for call in (cross, lambda out: se.CrossValidation.load(out)):
        with raises(InvalidFileError):
            call(out=copied)


FACTORS = 2


def test_functions_are_known_by_what_is_written_in_them(monkeypatch):
    def identity(function):
        return cross_validate.read_trainers({"a": function})["a"].identity

    def make(factors):
        return lambda train, seed: se.train_als(train, factors=factors, seed=seed)

    def by_global(train, seed):
        return se.train_als(train, factors=FACTORS, seed=seed)

    assert identity(make(2)) == identity(make(2))
    for one, other in (
        (make(2), make(3)),
        (lambda t, s: (t, s, 2), lambda t, s: (t, s, 4)),
        (lambda t, s, f=2: (t, s, f), lambda t, s, f=3: (t, s, f)),
        (lambda t, s, *, f=2: (t, s, f), lambda t, s, *, f=3: (t, s, f)),
        [partial(lambda t, s, f: 0, f=f) for f in ([1, {"a": 2}], [1, {"a": 3}])],
    ):
        assert identity(one) != identity(other)
    before = identity(by_global)
    monkeypatch.setitem(globals(), "FACTORS", 3)
    assert identity(by_global) != before
