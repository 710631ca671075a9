"""The real libraries, in their own environments, give the numbers that we give."""

import importlib
import json
import math
from pathlib import Path

import numpy as np
import pytest
from benchmark_calls import BENCHMARKS, call

import sparse_eval as se

SINGLE_PRECISION = {"lightfm", "lightgcn", "pyxclib", "tensorflow_recommenders", "torchmetrics"}


#: By suite: how it calls problems and numbers, and how many problems there have to be.
SUITES = {"agreement": ("cases", "metrics", 200), "protocols": ("problems", "numbers", 50)}
LIBRARIES = [
    pytest.param(suite, path.stem, id=f"{suite}-{path.stem}")
    for suite in SUITES
    for path in sorted((BENCHMARKS / "suites" / suite / "rivals").glob("*.py"))
]
PRINTED = BENCHMARKS / "suites" / "agreement" / "printed"
GOWALLA = Path(__file__).parents[3] / "shared" / "data" / "gowalla"

#: Margins of decisions, in units of nDCG.
MARGINS = [0.001, 0.003, 0.01, 0.1]
METRIC = "ndcg@10"


def python_of(name):
    """Return the interpreter of a library's environment, or skip the test."""
    environment = BENCHMARKS / "environments" / name
    if not (environment / "requirements.txt").exists():
        pytest.skip(f"{name} is not installed; scripts/test --agreement does that")
    return environment / "bin" / "python"


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    """Return the file of the problems of each suite."""
    paths = {}
    for suite, (problems, _, _) in SUITES.items():
        path = paths[suite] = tmp_path_factory.mktemp(suite) / "problems.json"
        made = call(f"suites.{suite}.{problems}:make")
        path.write_text(json.dumps(made), encoding="utf-8")
    return paths


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(("suite", "name"), LIBRARIES)
def test_same_numbers(suite, name, problems, tmp_path):
    noun, numbers, fewest = SUITES[suite]
    asked, values, python = problems[suite], tmp_path / "values.json", python_of(name)
    script = f"suites.{suite}.rivals.{name}"
    call("harness.libraries:answer", suite, script, asked, values, python=python)
    found = call(f"suites.{suite}.probe:compare", asked, values)
    check(found[numbers], name)
    assert found[f"n_{noun}"] >= fewest


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(path.stem for path in PRINTED.glob("*.json")))
def test_numbers_that_libraries_have_printed(name, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    cases, probe = (
        importlib.import_module(f"suites.agreement.{module}") for module in ("cases", "probe")
    )
    values, asked = PRINTED / f"{name}.json", tmp_path / "asked.json"
    n_cases = len(json.loads(values.read_text(encoding="utf-8"))["cases"])
    asked.write_text(json.dumps(cases.make(n_cases)), encoding="utf-8")
    found = probe.compare(str(asked), str(values))
    check(found["metrics"], name)
    assert found["n_cases"] >= 30


def check(numbers, name):
    tolerance = 1e-6 if name in SINGLE_PRECISION else 1e-9
    apart = {
        metric: entry
        for metric, entry in numbers.items()
        if not entry["max_difference"] <= tolerance
    }
    assert not apart
    assert numbers


@pytest.fixture(scope="module")
def clicks():
    """Return real check-ins of 2,000 users if they are there, otherwise synthetic clicks."""
    if not GOWALLA.exists():
        return se.datasets.synthetic(n_users=2000, n_items=500, seed=0)
    everything = se.datasets.load(GOWALLA / "train.txt", format="adjacency").to_frame()
    return se.Interactions.from_frame(everything[everything["user"].astype(int) < 2000])


MODELS = {
    "a": lambda train, seed: se.baselines.item_knn(train),
    "b": lambda train, seed: se.baselines.popularity(train),
}


def decided(name, *arguments):
    """Return the library's decisions, from its environment."""
    script = f"suites.inference.rivals.{name}:decisions"
    return call(script, *arguments, python=python_of(name))


@pytest.mark.long
@pytest.mark.slow
def test_verdicts_and_users_needed_equal_those_of_statsmodels(clicks, tmp_path):
    holdout = se.split.random(clicks, seed=0)
    evs = {
        name: se.evaluate_model(make(holdout, 0), holdout, METRIC) for name, make in MODELS.items()
    }
    np.savez(tmp_path / "values.npz", **{name: ev.values(METRIC) for name, ev in evs.items()})
    theirs = decided("statsmodels", tmp_path / "values.npz", MARGINS, 0.95, 0.8)
    tables = [se.compare(evs, margin=margin).table for margin in MARGINS]
    ours = [table["p_equivalent"][0] for table in tables]
    assert ours == pytest.approx(theirs["p_equivalent"], rel=1e-10, abs=1e-300)
    compared = se.compare(evs)
    needed = [compared.users_needed(margin)["users_needed"][0] for margin in MARGINS]
    assert needed == list(map(math.ceil, theirs["users_needed"]))
