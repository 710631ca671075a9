"""The image and the job of the guide: what they call is there, and what they say is so."""

import re
import shlex
from pathlib import Path

import yaml
from exact import exact_model

import sparse_eval as se

FOLDER = Path(__file__).parents[2] / "docs" / "guide" / "container"


def test_the_image_calls_commands_and_copies_files_that_exist():
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    assert re.findall(r"sparse-eval ([a-z]+)", text) == ["compile"]
    for line in re.findall(r"^COPY .*$", text, re.M):
        for name in shlex.split(line)[1:-1]:
            assert (FOLDER.parents[2] / name).exists()
    assert "USER 10001:10001" in text


def test_the_job_scores_a_folder(command, tmp_path, monkeypatch):
    job = yaml.safe_load((FOLDER / "cronjob.yaml").read_text(encoding="utf-8"))
    (container,) = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    holdout = se.split.random(se.datasets.synthetic(n_users=80, n_items=60, seed=1), seed=0)
    holdout.save(tmp_path / "data" / "split")
    (tmp_path / "data" / "checkpoints").mkdir()
    model = exact_model(holdout.train)
    se.save_model(model, tmp_path / "data" / "checkpoints" / "als.npz")
    (tmp_path / "results").mkdir()
    places = ("/data", "/results")
    words = [f"{tmp_path}{word}" if word.startswith(places) else word for word in container["args"]]
    status, printed, said = command(*words)
    assert status == 0, said
    assert "als.npz" in printed
    assert (tmp_path / "results" / "table.csv").exists()
