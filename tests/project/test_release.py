"""What is published says the same of itself everywhere, and is checked before."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest
import yaml

from sparse_eval.cli.terminal import ISSUES

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
#: Distributions whose package has another name on conda-forge.
ON_CONDA = {"matplotlib": "matplotlib-base"}
#: Extras for working on the package; nothing of it imports what they install.
FOR_DEVELOPERS = {"docs", "full", "test"}


def document(*parts):
    return yaml.safe_load((ROOT.joinpath(*parts)).read_text(encoding="utf-8"))


def workflow(name):
    path = ROOT / ".github" / "workflows" / name
    if not path.exists():
        pytest.skip("an sdist has no workflows")
    return document(".github", "workflows", name)


def bounds(requirements):
    """Return the lower bound of each distribution; not of the package's own extras."""
    found = {}
    for requirement in requirements:
        name, bound = re.fullmatch(r"([\w-]+)(?:\[.*\])? ?(>=[\d.]+)?", requirement).groups()
        if name != "sparse_eval":
            found[ON_CONDA.get(name, name)] = bound
    return found


def test_addresses_and_versions_agree():
    citation = document("CITATION.cff")
    assert citation["repository-code"] == PROJECT["urls"]["Source"]
    assert PROJECT["urls"]["Issues"] == ISSUES == PROJECT["urls"]["Source"] + "/issues"
    assert str(citation["version"]) == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]


def test_the_conda_recipe_says_what_pyproject_says():
    recipe = document("scripts", "conda", "recipe.yaml")
    assert recipe["context"]["version"] == PROJECT["version"]
    assert recipe["package"]["name"] == PROJECT["name"]
    run, constraints = (
        dict(requirement.split(" ") for requirement in recipe["requirements"][part])
        for part in ("run", "run_constraints")
    )
    assert run.pop("python") == PROJECT["requires-python"]
    assert run == bounds(PROJECT["dependencies"])
    extras = PROJECT["optional-dependencies"]
    assert constraints == bounds(
        [name for extra in extras if extra not in FOR_DEVELOPERS for name in extras[extra]]
    )
    host = recipe["requirements"]["host"]
    host = dict(requirement.split(" ") for requirement in host if requirement != "pip")
    assert bounds(PYPROJECT["build-system"]["requires"]) == {"hatchling": host["hatchling"]}
    assert host["python"] == PROJECT["requires-python"].removeprefix(">=") + ".*"
    entry_points = dict(point.split(" = ") for point in recipe["build"]["python"]["entry_points"])
    assert entry_points == PROJECT["scripts"]
    about = recipe["about"]
    assert about["summary"] == PROJECT["description"]
    assert about["license"] == PROJECT["license"]
    assert [about["license_file"]] == PROJECT["license-files"]
    assert about["homepage"] == PROJECT["urls"]["Source"]


def test_what_is_promised_is_tested():
    jobs = workflow("test.yml")["jobs"]
    promised = {
        classifier.rpartition(" ")[2]
        for classifier in PROJECT["classifiers"]
        if classifier.startswith("Programming Language :: Python :: ")
    }
    oldest = PROJECT["requires-python"].removeprefix(">=")
    assert oldest in promised
    assert promised <= set(jobs["test"]["strategy"]["matrix"]["python"])
    assert "continue-on-error" not in jobs["test"]
    of_oldest = [step["with"] for step in jobs["oldest"]["steps"] if "with" in step]
    assert of_oldest == [{"python-version": oldest}]
    commands = {step.get("run") for job in jobs.values() for step in job["steps"]}
    assert {"scripts/test --oldest", "scripts/package", "scripts/docs"} <= commands


@pytest.fixture(scope="module")
def faults():
    return runpy.run_path(str(ROOT / "scripts" / "check_release.py"))["faults"]


def test_a_release_that_can_be_published(faults, tmp_path):
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nversion = "1.2.0"\nurls.Source = "https://github.com/us/ours"\n'
    )
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.0 - 2026-11-23\n")
    assert faults("v1.2.0", "https://github.com/us/ours", tmp_path) == []
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n## 1.2.01\n")
    assert faults("v1.2", "https://github.com/fork/ours", tmp_path) == [
        "the tag is v1.2, and the version in pyproject.toml 1.2.0",
        "CHANGELOG.md has no heading '## 1.2.0 - YYYY-MM-DD'",
        "this is https://github.com/fork/ours, and pyproject.toml names https://github.com/us/ours",
    ]


def test_only_a_date_keeps_this_from_being_a_release(faults):
    found = faults(f"v{PROJECT['version']}", PROJECT["urls"]["Source"])
    assert all(fault.startswith("CHANGELOG.md has no heading") for fault in found)
