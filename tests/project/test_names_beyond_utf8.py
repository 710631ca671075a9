"""Names of files and models that UTF-8 cannot hold are shown escaped, and work."""

import os

import pytest

import sparse_eval as se


@pytest.mark.long
def test_models_and_results(tmp_path, command):
    odd, split, results = os.fsdecode(b"als\xff"), tmp_path / "split", tmp_path / "results"
    try:
        (tmp_path / odd).mkdir()
    except OSError:
        pytest.skip("the file system has no names but UTF-8")
    holdout = se.split.random(se.datasets.synthetic(n_users=60, n_items=40, seed=0), seed=0)
    holdout.save(split)
    for name, model in ((odd, se.baselines.ease(holdout)), ("b", se.baselines.item_knn(holdout))):
        se.save_model(model, tmp_path / odd / f"{name}.npz")
        se.evaluate_model(model, holdout, "ndcg@10").save(results / name)
    for words in (
        ("score", tmp_path / odd, "--split", split, "-m", "ndcg@10"),
        ("compare", results),
        ("report", results, "-o", tmp_path / "r.html"),
    ):
        status, printed, said = command(*words)
        assert status == 0, said
        if words[0] == "report":
            printed = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert "als\\udcff" in printed
