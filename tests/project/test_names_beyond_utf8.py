"""Names of files and models that UTF-8 cannot hold are shown escaped, and work."""

import os

import pytest

import sparse_eval as se

ODD = os.fsdecode(b"als\xff")
SHOWN = "als\\udcff"
HOLDOUT = se.split.random(se.datasets.synthetic(n_users=60, n_items=40, seed=0), seed=0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    try:
        (folder / ODD).mkdir()
    except OSError:
        pytest.skip("the file system has no names but UTF-8")
    HOLDOUT.save(folder / "split")
    for name in (ODD, "knn"):
        model = se.baselines.item_knn(HOLDOUT) if name == "knn" else se.baselines.ease(HOLDOUT)
        se.save_model(model, folder / ODD / f"{name}.npz")
        se.evaluate_model(model, HOLDOUT, "ndcg@10").save(folder / "results" / name)
    return folder


@pytest.mark.long
def test_models_and_results(folder, tmp_path, command):
    split = folder / "split"
    status, printed, said = command("score", folder / ODD, "--split", split, "-m", "ndcg@10")
    assert status == 0, said
    assert SHOWN in printed
    status, printed, said = command("compare", folder / "results")
    assert status == 0, said
    assert SHOWN in printed
    page = tmp_path / "report.html"
    status, _, said = command("report", folder / "results", "-o", page)
    assert status == 0, said
    assert SHOWN in page.read_text(encoding="utf-8")


def test_a_folder_named_like_a_checkpoint(folder, tmp_path, command):
    (tmp_path / "x.npz").mkdir()
    se.save_model(se.baselines.popularity(HOLDOUT), tmp_path / "good.npz")
    for given in ((tmp_path,), sorted(tmp_path.iterdir())):
        status, _, said = command("score", *given, "--split", folder / "split", "-m", "mrr@5")
        assert status == 1
        assert "is not a file" in said
        assert "1 of 2 checkpoints could not be scored" in said
