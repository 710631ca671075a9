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
TRUTH = pd.DataFrame({"visitor": [*"aabc"], "page": [*"yzxx"], "worth": [1, 5, 3, 0]})
GROUPS = pd.DataFrame({"page": [*"xyz"], "genre": ["news", "sport", "news"]})
VECTORS = pd.DataFrame({"page": [*"xyz"], "v0": [1.0, 0.0, 1.0], "v1": [0.0, 1.0, 1.0]})
COLUMNS = ("--user", "visitor", "--item", "page")

Means = Callable[..., dict[str, float]]


@pytest.fixture(params=["csv", "parquet"])
def write(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Path]:
    """Write frames as files of a kind."""

    def write(name: str, frame: pd.DataFrame) -> Path:
        path = tmp_path / f"{name}.{request.param}"
        if request.param == "csv":
            frame.to_csv(path, index=False)
        else:
            frame.to_parquet(path)
        return path

    return write


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
    return se.Relevance.from_frame(TRUTH, user="visitor", item="page", **options)


def test_names_columns(write: Callable[..., Path], means: Means) -> None:
    paths = (write("recs", RECS), write("truth", TRUTH))
    found = means(*paths, *COLUMNS, "--rank", "place", "-m", "ndcg@3,mrr")
    assert found == se.evaluate(rankings(rank="place"), relevance(), ["ndcg@3", "mrr"]).mean()
    found = means(*paths, *COLUMNS, "--score", "points", "--gain", "worth", "-m", "ndcg@3")
    expected = se.evaluate(rankings(score="points"), relevance(gain="worth"), "ndcg@3")
    assert found == expected.mean()


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


def test_users_without_relevant_items(write: Callable[..., Path], means: Means) -> None:
    paths = (write("recs", RECS), write("truth", TRUTH))
    words = (*COLUMNS, "--rank", "place", "--gain", "worth", "-m", "recall@1,mrr")
    lists, gains = rankings(rank="place"), relevance(gain="worth")
    seen = set()
    for rule in ("exclude", "zero", "judged"):
        ev = se.evaluate(lists, gains, se.Protocol(["recall@1", "mrr"], no_relevant=rule))
        assert means(*paths, *words, "--no-relevant", rule) == ev.mean()
        seen.add(ev["mrr"])
    assert len(seen) == 2  # c has a judged zero


def test_threshold(write: Callable[..., Path], means: Means, tmp_path: Path) -> None:
    words = (*COLUMNS, "--rank", "place", "--gain", "worth", "-m", "recall@3,ndcg@3")
    words = (*words, "--threshold", 3)
    gains = relevance(gain="worth", threshold=3)
    expected = se.evaluate(rankings(rank="place"), gains, ["recall@3", "ndcg@3"]).mean()
    assert means(write("recs", RECS), write("truth", TRUTH), *words) == expected
    positions = sparse.csr_matrix([[1, 2, 3], [2, 3, 1]])
    worth = sparse.csr_matrix([[0, 1, 5], [3, 0, 0]])
    sparse.save_npz(tmp_path / "p.npz", positions)
    sparse.save_npz(tmp_path / "v.npz", worth)
    words = (tmp_path / "p.npz", tmp_path / "v.npz", "--threshold", 3, "-m", "recall@3,ndcg@3")
    assert means(*words) == pytest.approx(expected)
    run = "a Q0 x 1 3 t\na Q0 y 1 2 t\na Q0 z 1 1 t\nb Q0 z 1 3 t\nb Q0 x 1 2 t\nb Q0 y 1 1 t\n"
    (tmp_path / "run").write_text(run)
    (tmp_path / "qrels").write_text("a 0 y 1\na 0 z 5\nb 0 x 3\n")
    assert means(tmp_path / "run", tmp_path / "qrels", *words[2:]) == pytest.approx(expected)


METRICS = ["calibration@2", "diversity(similarity=vectors)@2"]


def test_groups_and_vectors_of_items(
    write: Callable[..., Path], means: Means, tmp_path: Path
) -> None:
    for name, frame in (("recs", RECS), ("truth", TRUTH)):  # of which tables on disk have none
        frame.to_csv(tmp_path / f"{name}-in-memory.csv", index=False)
    paths = (tmp_path / "recs-in-memory.csv", tmp_path / "truth-in-memory.csv")
    train = TRUTH.iloc[::-1].rename(columns={"worth": "ignored"})
    words = (*COLUMNS, "--rank", "place", "--train", write("train", train))
    files = ("--item-groups", write("groups", GROUPS), "--item-vectors", write("vectors", VECTORS))
    expected = se.evaluate(
        rankings(rank="place"),
        relevance(),
        METRICS,
        train=relevance(),
        items=se.ItemData(
            groups=GROUPS.set_index("page")["genre"], vectors=VECTORS.set_index("page")
        ),
    ).mean()
    assert means(*paths, *words, *files, "-m", ",".join(METRICS)) == expected
    weights = pd.DataFrame({"page": [*"zyx"], "news": [2, 0, 1], "sport": [0, 3, 0]})
    files = ("--item-groups", write("weights", weights), *files[2:])
    assert means(*paths, *words, *files, "-m", ",".join(METRICS)) == pytest.approx(expected)


def test_groups_and_vectors_of_numbered_items(
    write: Callable[..., Path], means: Means, tmp_path: Path
) -> None:
    positions = sparse.csr_matrix([[1, 2, 0], [0, 1, 2]])
    gains = sparse.csr_matrix([[0, 1, 0], [0, 3, 1]])
    sparse.save_npz(tmp_path / "p.npz", positions)
    sparse.save_npz(tmp_path / "v.npz", gains)
    groups, vectors = np.array([0, 1, 0]), VECTORS[["v0", "v1"]].to_numpy()
    np.save(tmp_path / "groups.npy", groups)
    np.save(tmp_path / "vectors.npy", vectors)
    sparse.save_npz(tmp_path / "groups.npz", sparse.csr_matrix(np.eye(2)[groups]))
    expected = se.evaluate(
        positions, gains, METRICS, train=gains, items=se.ItemData(groups=groups, vectors=vectors)
    ).mean()
    by_item = {"item": [2, 0, 1], "group": [0, 0, 1]}
    for file in ("groups.npy", "groups.npz", write("groups", pd.DataFrame(by_item))):
        words = ("--train", tmp_path / "v.npz", "--item-groups", tmp_path / file)
        words = (*words, "--item-vectors", tmp_path / "vectors.npy", "-m", ",".join(METRICS))
        assert means(tmp_path / "p.npz", tmp_path / "v.npz", *words) == pytest.approx(expected)


def test_ids_of_a_run_are_text_in_other_files_too(
    write: Callable[..., Path], means: Means, tmp_path: Path
) -> None:
    (tmp_path / "run").write_text("1 Q0 7 1 2 t\n1 Q0 8 2 1 t\n")
    (tmp_path / "qrels").write_text("1 0 8 1\n")
    groups = write("groups", pd.DataFrame({"item": [8, 7], "group": ["a", "b"]}))
    words = ("--train", tmp_path / "qrels", "--item-groups", groups, "-m", "calibration@2")
    assert 0 < means(tmp_path / "run", tmp_path / "qrels", *words)["calibration@2"] < 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("p.npz", "v.npz", "--user", "u", "--rank", "r"), "--user and --rank would name columns"),
        (("p.npz", "v.npz", "--ties", "average"), "--ties orders equal scores, and p.npz holds"),
        (("recs.csv", "truth.csv", "--ties", "average"), "and recs.csv holds ranks; leave it out"),
        (("recs.csv", "truth.csv", "--rank", "a", "--score", "b"), "one of --rank and --score"),
        (("recs.csv", "truth.csv", "--user", "u"), "name the columns with --user, --item"),
        (("recs.csv", "truth.csv", "--score", "points"), "with --user, --item"),
        (("missing", "truth.csv", "-m", "r@10"), "did you mean 'recall' or 'r_precision'?"),
        (("missing", "truth.csv", "--threshold", "0"), "--threshold: expected a finite number"),
        (("recs.csv", "truth.csv", "--threshold", "9"), "truth.csv: threshold is 9.0, above every"),
        (("p.npz", "v.npz", "--threshold", "9"), "v.npz: threshold is 9.0, above every gain"),
        (("p.npz", "v.npz", "--item-groups", "v.npz"), "--item-groups covers 2 items, but"),
        (("p.npz", "v.npz", "--item-vectors", "v.npz"), "v.npz: holds a sparse matrix; expected a"),
        (("p.npz", "v.npz", "--item-groups", "truth.csv", "--item", "x"), "--item would name"),
        (("recs.csv", "truth.csv", "--item-groups", "no.csv"), "no.csv: has the columns a, b; exp"),
        (("recs.csv", "truth.csv", "--item-groups", "two.csv"), "--item-groups has no entry for"),
        (("p.npz", "v.npz", "-m", "calibration@2"), "needs item_groups: give --item-groups to ev"),
        (("p.npz", "v.npz", "-m", "novelty@2"), "needs train: give --train"),
        (("p.npz", "v.npz", "-m", "recall(weights=ips)@2"), "needs propensity: give --propensity"),
        (("recs.csv", "truth.csv", "--no-relevant", "drop"), ""),
        (("recs.csv", "truth.csv", "--ties", "first"), ""),
    ],
)
def test_refuses_options(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    sparse.save_npz("p.npz", sparse.csr_matrix([[1, 2, 0], [0, 1, 2]]))
    sparse.save_npz("v.npz", sparse.csr_matrix([[0, 1, 0], [0, 3, 1]]))
    names = {"visitor": "user", "page": "item"}
    RECS.drop(columns="points").rename(columns={**names, "place": "rank"}).to_csv(
        "recs.csv", index=False
    )
    TRUTH.rename(columns={**names, "worth": "gain"}).to_csv("truth.csv", index=False)
    Path("no.csv").write_text("a,b\n1,2\n")
    Path("two.csv").write_text("item,group\nx,1\ny,2\n")
    status, printed, said = command("evaluate", *words)
    assert (status, printed) == (2, "")
    assert "Traceback" not in said
    if says:
        assert said.splitlines()[-1].startswith("error: ")
        assert says in said.splitlines()[-1]


def test_judged_items_and_users_without_lists(write: Callable[..., Path], means: Means) -> None:
    truth = TRUTH.assign(visitor=[*"aabc"], worth=[1, 0, 3, 2])
    paths = (write("recs", RECS), write("truth", truth))
    named = (*COLUMNS, "--rank", "place", "--gain", "worth", "-m", "mrr,judged@2,bpref")
    gains = se.Relevance.from_frame(truth, user="visitor", item="page", gain="worth")
    metrics = ["mrr", "judged@2", "bpref"]
    for words, rules in (
        ((), {}),
        (("--judged-only",), {"judged_only": True}),
        (("--without-list", "exclude"), {"without_list": "exclude"}),
        (("--convention", "trec_eval"), {"convention": "trec_eval"}),
        (
            ("--convention", "trec_eval", "--without-list", "zero"),
            {"convention": "trec_eval", "without_list": "zero"},
        ),
    ):
        protocol = se.Protocol(metrics, **rules)  # type: ignore[arg-type]
        expected = se.evaluate(rankings(rank="place"), gains, protocol)
        assert means(*paths, *named, *words) == expected.mean()
    assert expected["mrr"] == pytest.approx((1 / 2 + 1 / 2 + 0) / 3)
