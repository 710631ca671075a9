"""Test the options of the command evaluate against what Python's evaluate returns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import Command
from scipy import sparse

import sparse_eval as se

RECS = pd.DataFrame(
    {
        "visitor": [*"aaabbb"],
        "page": ["x", "y", "z", "z", "x", "y"],
        "place": [1, 2, 3, 1, 2, 3],
        "points": [0.5, 0.5, 0.1, 0.9, 0.9, 0.9],
    }
)
TRUTH = pd.DataFrame({"visitor": [*"aabcd"], "page": [*"yzxxx"], "worth": [1, 5, 3, 0, 2]})
GROUPS = pd.DataFrame({"page": [*"xyz"], "genre": ["news", "sport", "news"]})
WEIGHTS = pd.DataFrame({"page": [*"zyx"], "news": [2, 0, 1], "sport": [0, 3, 0]})
VECTORS = pd.DataFrame({"page": [*"xyz"], "v0": [1.0, 0.0, 1.0], "v1": [0.0, 1.0, 1.0]})
CHANCES = pd.DataFrame({"page": [*"zyx"], "chance": [0.5, 0.25, 1.0]})
COLUMNS = ("--user", "visitor", "--item", "page")
METRICS = ["ndcg@3", "mrr", "recall@1", "judged@2"]
OF_ITEMS = ["calibration@2", "diversity(similarity=vectors)@2", "recall(weights=snips)@2"]

Means = Callable[..., dict[str, float]]


@pytest.fixture
def means(command: Command) -> Means:
    """Run evaluate, and return the means."""

    def means(*words: object) -> dict[str, float]:
        status, printed, said = command("evaluate", *words, "--format", "json")
        assert status == 0, said
        return {name: row["mean"] for name, row in json.loads(printed)["metrics"].items()}

    return means


def rankings(**options: Any) -> se.Rankings:
    return se.Rankings.from_frame(RECS, user="visitor", item="page", **options)


def relevance(**options: Any) -> se.Relevance:
    return se.Relevance.from_frame(TRUTH, user="visitor", item="page", **{"gain": None} | options)


#: Options, and what Python is given: to make lists, to make gains, and as the protocol.
OPTIONS: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ("--rank place", {"rank": "place"}, {}, {}),
    ("--score points --gain worth", {"score": "points"}, {"gain": "worth"}, {}),
    *(
        (f"--score points --ties {ties}", {"score": "points", "ties": ties}, {}, {})
        for ties in ("item", "item_descending", "average", "pessimistic")
    ),
    ("--rank place --gain worth --threshold 3", {}, {"gain": "worth", "threshold": 3}, {}),
    *(
        (f"--rank place --gain worth --{rule.replace('_', '-')} {value}", {}, {"gain": "worth"},
         {rule: value})
        for rule, values in {
            "no_relevant": ("exclude", "zero", "judged"), "without_list": ("exclude", "zero"),
            "convention": ("trec_eval",),
        }.items()
        for value in values
    ),
    ("--rank place --gain worth --judged-only", {}, {"gain": "worth"}, {"judged_only": True}),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:judged_only=True, but every item")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(("words", "lists", "gains", "rules"), OPTIONS)
def test_options_mean_what_they_mean_in_python(
    means: Means,
    tmp_path: Path,
    kind: str,
    words: str,
    lists: dict[str, Any],
    gains: dict[str, Any],
    rules: dict[str, Any],
) -> None:
    paths = tmp_path / f"recs.{kind}", tmp_path / f"truth.{kind}"
    for frame, path in zip((RECS, TRUTH), paths, strict=True):
        if kind == "csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path)
    names = ["ndcg@3"] if "average" in words else METRICS
    made = rankings(**(lists or {"rank": "place"}))
    expected = se.evaluate(made, relevance(**gains), se.Protocol(names, **rules))
    words = [*words.split(), *([] if gains else ["--gain", ""])]
    assert means(*paths, *COLUMNS, *words, "-m", ",".join(names)) == expected.mean()


def test_ties_given_go_before_those_of_a_convention(tmp_path: Path, means: Means) -> None:
    lines = RECS.assign(q="Q0", rank=0, tag="t")[["visitor", "q", "page", "rank", "points", "tag"]]
    lines.to_csv(tmp_path / "run", sep=" ", header=False, index=False)
    judged = TRUTH.assign(q=0)[["visitor", "q", "page", "worth"]]
    judged.to_csv(tmp_path / "qrels", sep=" ", header=False, index=False)
    words = (tmp_path / "run", tmp_path / "qrels", "-m", "mrr", "--convention", "trec_eval")
    run, qrels = tmp_path / "run", se.trec.read_qrels(tmp_path / "qrels")
    for ties in ("item", "item_descending"):
        lists = se.trec.read_run(run, ties=ties)
        expected = se.evaluate(lists, qrels, "mrr", convention="trec_eval").mean()
        assert means(*words, "--ties", ties) == expected
        assert (means(*words) == expected) == (ties == "item_descending")


def test_threshold_of_matrices_and_runs(means: Means, tmp_path: Path) -> None:
    words = ("--threshold", 3, "-m", "recall@3,ndcg@3")
    expected = se.evaluate(
        rankings(rank="place"), relevance(gain="worth", threshold=3), ["recall@3", "ndcg@3"]
    ).mean()
    sparse.save_npz(tmp_path / "p.npz", sparse.csr_matrix([[1, 2, 3], [2, 3, 1]]))
    sparse.save_npz(tmp_path / "v.npz", sparse.csr_matrix([[0, 1, 5], [3, 0, 0]]))
    assert means(tmp_path / "p.npz", tmp_path / "v.npz", *words) == pytest.approx(expected)
    run = "a Q0 x 1 3 t\na Q0 y 1 2 t\na Q0 z 1 1 t\nb Q0 z 1 3 t\nb Q0 x 1 2 t\nb Q0 y 1 1 t\n"
    (tmp_path / "run").write_text(run)
    (tmp_path / "qrels").write_text("a 0 y 1\na 0 z 5\nb 0 x 3\n")
    assert means(tmp_path / "run", tmp_path / "qrels", *words) == pytest.approx(expected)


def test_data_of_items(means: Means, tmp_path: Path) -> None:
    train = TRUTH.iloc[::-1].rename(columns={"worth": "ignored"})
    frames = {"recs": RECS, "truth": TRUTH, "train": train, "groups": GROUPS, "vectors": VECTORS,
              "chances": CHANCES}  # fmt: skip
    for name, frame in frames.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    GROUPS.to_parquet(tmp_path / "groups.parquet")
    GROUPS.set_index("page").to_parquet(tmp_path / "by_item.parquet")
    WEIGHTS.to_csv(tmp_path / "weights.csv", index=False)
    items = se.ItemData(
        groups=GROUPS.set_index("page")["genre"],
        vectors=VECTORS.set_index("page"),
        propensity=CHANCES.set_index("page")["chance"],
    )
    lists = rankings(rank="place")
    expected = se.evaluate(lists, relevance(), OF_ITEMS, train=relevance(), items=items).mean()
    for groups in ("groups.csv", "groups.parquet", "by_item.parquet", "weights.csv"):
        found = means(
            tmp_path / "recs.csv", tmp_path / "truth.csv", *COLUMNS, "--rank", "place",
            "--gain", "", "--train", tmp_path / "train.csv", "--item-groups", tmp_path / groups,
            "--item-vectors", tmp_path / "vectors.csv", "--propensity", tmp_path / "chances.csv",
            "-m", ",".join(OF_ITEMS),
        )  # fmt: skip
        assert found == pytest.approx(expected)


def test_data_of_numbered_items(means: Means, tmp_path: Path) -> None:
    positions = sparse.csr_matrix([[1, 2, 0], [0, 1, 2]])
    gains = sparse.csr_matrix([[0, 1, 0], [0, 3, 1]])
    sparse.save_npz(tmp_path / "p.npz", positions)
    sparse.save_npz(tmp_path / "v.npz", gains)
    groups, vectors = np.array([0, 1, 0]), VECTORS[["v0", "v1"]].to_numpy()
    np.save(tmp_path / "groups.npy", groups)
    np.save(tmp_path / "vectors.npy", vectors)
    sparse.save_npz(tmp_path / "groups.npz", sparse.csr_matrix(np.eye(2)[groups]))
    (tmp_path / "groups.csv").write_text("item,group\n2,0\n0,0\n1,1\n")
    items = se.ItemData(groups=groups, vectors=vectors)
    expected = se.evaluate(positions, gains, OF_ITEMS[:2], train=gains, items=items).mean()
    for file in ("groups.npy", "groups.npz", "groups.csv"):
        words = ("--train", tmp_path / "v.npz", "--item-groups", tmp_path / file)
        words = (*words, "--item-vectors", tmp_path / "vectors.npy", "-m", ",".join(OF_ITEMS[:2]))
        assert means(tmp_path / "p.npz", tmp_path / "v.npz", *words) == pytest.approx(expected)


def test_ids_of_a_run_are_text_in_other_files_too(means: Means, tmp_path: Path) -> None:
    (tmp_path / "run").write_text("1 Q0 7 1 2 t\n1 Q0 8 2 1 t\n")
    (tmp_path / "qrels").write_text("1 0 8 1\n")
    (tmp_path / "groups.csv").write_text("item,group\n8,a\n7,b\n")
    words = ("--train", tmp_path / "qrels", "--item-groups", tmp_path / "groups.csv")
    found = means(tmp_path / "run", tmp_path / "qrels", *words, "-m", "calibration@2")
    assert 0 < found["calibration@2"] < 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("p.npz v.npz --ties average", "--ties orders equal scores, and p.npz holds"),
        ("recs.csv truth.csv --ties average", "and recs.csv holds ranks; leave it out"),
        ("recs.csv truth.csv --rank a --score b", "one of --rank and --score"),
        ("recs.csv truth.csv --user u", "name the columns with --user, --item"),
        ("missing truth.csv -m r@10", "did you mean 'recall' or 'r_precision'?"),
        ("recs.csv truth.csv --threshold 0", "threshold: expected a finite number"),
        ("recs.csv truth.csv --threshold 9", "truth.csv: threshold is 9.0, above every"),
        ("p.npz v.npz --threshold 9", "v.npz: threshold is 9.0, above every gain"),
        ("p.npz v.npz --item-groups v.npz", "--item-groups covers 2 items, but"),
        ("p.npz v.npz --item-vectors v.npz", "v.npz: holds a sparse matrix; expected a"),
        (
            "recs.csv truth.csv --item-groups no.csv",
            "no.csv: no column for the item was recognized",
        ),
        ("p.npz v.npz -m novelty@2", "needs train: give --train"),
        (
            "recs.parquet truth.parquet -m categorical_diversity@2 --item-groups groups.csv",
            "--item-groups cannot be combined with tables",
        ),
    ],
)
def test_refuses_options(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    sparse.save_npz("p.npz", sparse.csr_matrix([[1, 2, 0], [0, 1, 2]]))
    sparse.save_npz("v.npz", sparse.csr_matrix([[0, 1, 0], [0, 3, 1]]))
    Path("recs.csv").write_text("user,item,rank\na,x,1\na,y,2\n")
    Path("truth.csv").write_text("user,item,gain\na,y,1\n")
    Path("no.csv").write_text("a,b\n1,2\n")
    Path("groups.csv").write_text("item,group\nx,1\ny,2\n")
    for side in ("recs", "truth"):
        pd.read_csv(f"{side}.csv").to_parquet(f"{side}.parquet")
    status, printed, said = command("evaluate", *words.split())
    assert (status, printed) == (2, "")
    assert said.splitlines()[-1].startswith("error: ")
    assert says in said.splitlines()[-1]
