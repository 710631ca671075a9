"""Test the command evaluate: its files and options, against what Python's evaluate returns."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import sparse_eval as se

RUN = "ann Q0 x 1 0.9 tag\nann Q0 y 2 0.9 tag\nbob Q0 x 1 0.5 tag\n"
QRELS = "ann 0 x 1\nann 0 z 2\nbob 0 y 0\ncat 0 x 1\n"

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


@pytest.fixture
def means(command):
    """Run evaluate, and return the means."""

    def means(*words):
        status, printed, said = command("evaluate", *words, "--format", "json")
        assert status == 0, said
        return {name: row["mean"] for name, row in json.loads(printed)["metrics"].items()}

    return means


@pytest.fixture
def trec(tmp_path):
    (tmp_path / "run").write_text(RUN)
    (tmp_path / "qrels").write_text(QRELS)
    return tmp_path / "run", tmp_path / "qrels"


def rankings(**options):
    return se.Rankings.from_frame(RECS, user="visitor", item="page", **options)


def relevance(**options):
    return se.Relevance.from_frame(TRUTH, user="visitor", item="page", **{"gain": None} | options)


def test_evaluates_a_run_against_qrels(command, trec):
    options = ("-m", "mrr,recall@2", "--format", "csv", "--per-user")
    status, printed, _ = command("evaluate", *trec, *options, "--convention", "trec_eval")
    assert status == 0
    # Of equal scores, the larger name comes first.
    assert printed == "user,mrr,recall@2\nann,0.5,0.5\nbob,0.0,0.0\ncat,,\n"
    _, printed, _ = command("evaluate", *trec, *options)
    assert printed == "user,mrr,recall@2\nann,1.0,0.5\nbob,,\ncat,0.0,0.0\n"
    _, printed, _ = command("evaluate", *trec, "--convention", "sklearn")  # which lacks mrr
    assert "ndcg@20" in printed


@pytest.mark.parametrize("kind", ["table", "csv"])
def test_notes_means_of_few_users(command, trec, kind):
    out = ("--out", trec[0].parent / "out")
    status, printed, said = command("evaluate", *trec, "-m", "mrr", "--format", kind, *out)
    assert status == 0
    few = "too few users for the intervals of mrr"
    assert few in printed if kind == "table" else f"warning: {few}" in said
    assert (printed + said).count(few) == 1


#: Options, and what Python is given: to make lists, to make gains, and as the protocol.
OPTIONS = [
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
        for rule, value in [
            ("no_relevant", "zero"), ("no_relevant", "judged"), ("without_list", "zero"),
            ("convention", "trec_eval"),
        ]
    ),
    ("--rank place --gain worth --judged-only", {}, {"gain": "worth"}, {"judged_only": True}),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:judged_only=True, but every item")
@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(("words", "lists", "gains", "rules"), OPTIONS)
def test_options_mean_what_they_mean_in_python(means, tmp_path, kind, words, lists, gains, rules):
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


def test_ties_given_go_before_those_of_a_convention(trec, means):
    words = (*trec, "-m", "mrr", "--convention", "trec_eval")
    qrels = se.trec.read_qrels(trec[1])
    for ties in ("item", "item_descending"):
        lists = se.trec.read_run(trec[0], ties=ties)
        expected = se.evaluate(lists, qrels, "mrr", convention="trec_eval").mean()
        assert means(*words, "--ties", ties) == expected
        assert (means(*words) == expected) == (ties == "item_descending")


def test_threshold_of_matrices(means, tmp_path):
    # The same lists and gains as in the tables.
    metrics = ["recall@3", "ndcg@3"]
    expected = se.evaluate(rankings(rank="place"), relevance(gain="worth", threshold=3), metrics)
    sparse.save_npz(tmp_path / "p.npz", sparse.csr_matrix([[1, 2, 3], [2, 3, 1]]))
    sparse.save_npz(tmp_path / "v.npz", sparse.csr_matrix([[0, 1, 5], [3, 0, 0]]))
    words = (tmp_path / "p.npz", tmp_path / "v.npz", "--threshold", 3, "-m", ",".join(metrics))
    assert means(*words) == pytest.approx(expected.mean())


def test_data_of_items(means, tmp_path):
    train = TRUTH.iloc[::-1].rename(columns={"worth": "ignored"})
    frames = {"recs": RECS, "truth": TRUTH, "train": train, "groups": GROUPS, "vectors": VECTORS,
              "chances": CHANCES, "weights": WEIGHTS}  # fmt: skip
    for name, frame in frames.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    GROUPS.to_parquet(tmp_path / "groups.parquet")
    GROUPS.set_index("page").to_parquet(tmp_path / "by_item.parquet")
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


def test_ids_of_a_run_are_text_in_other_files_too(means, tmp_path):
    (tmp_path / "run").write_text("1 Q0 7 1 2 t\n1 Q0 8 2 1 t\n")
    (tmp_path / "qrels").write_text("1 0 8 1\n")
    (tmp_path / "groups.csv").write_text("item,group\n8,a\n7,b\n")
    words = ("--train", tmp_path / "qrels", "--item-groups", tmp_path / "groups.csv")
    found = means(tmp_path / "run", tmp_path / "qrels", *words, "-m", "calibration@2")
    assert 0 < found["calibration@2"] < 1


def test_a_folder_of_a_split_stands_for_its_two_files(means, tmp_path):
    gains = np.random.default_rng(0).random((40, 20)) < 0.2
    users, items = np.nonzero(gains)
    clicks = se.Interactions.from_frame(pd.DataFrame({"user": users, "item": items}))
    holdout = se.split.random(clicks, fraction=0.5, seed=0)
    holdout.save(tmp_path / "split")
    lists = se.Rankings.from_popularity(holdout.train, 5)
    positions = lists.to_positions()
    sparse.save_npz(tmp_path / "lists.npz", sparse.csr_matrix(positions))
    coo = sparse.coo_matrix(positions)
    ids = {"user": holdout.users[coo.row], "item": holdout.items[coo.col], "rank": coo.data}
    pd.DataFrame(ids).to_parquet(tmp_path / "lists.parquet")
    train, validation = (tmp_path / "split" / f"{name}.npz" for name in ("train", "validation"))
    metrics = ("-m", "ndcg@5,novelty@5,coverage@5")
    found = means(tmp_path / "lists.parquet", tmp_path / "split", *metrics)
    assert found == means(tmp_path / "lists.npz", validation, "--train", train, *metrics)
    assert len(found) == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("p.npz v.npz --ties average", "--ties orders equal scores, and p.npz holds"),
        ("recs.csv truth.csv --ties average", "and recs.csv holds ranks; leave it out"),
        ("recs.csv truth.csv --rank a --score b", "one of --rank and --score"),
        ("recs.csv truth.csv --user u", "name the columns with --user, --item"),
        ("p.npz v.npz --threshold 9", "v.npz: threshold is 9.0, above every gain"),
        ("p.npz v.npz --item-groups v.npz", "--item-groups covers 2 items, but"),
        (
            "recs.csv truth.csv --item-groups no.csv",
            "no.csv: no column for the item was recognized",
        ),
        ("p.npz v.npz -m novelty@2", "needs train: give --train"),
        (
            "recs.parquet truth.parquet -m categorical_diversity@2 --item-groups groups.csv",
            "--item-groups cannot be combined with tables",
        ),
        ("recs.parquet empty", "error: empty: "),
    ],
)
def test_refuses_options_and_files(command, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    sparse.save_npz("p.npz", sparse.csr_matrix([[1, 2, 0], [0, 1, 2]]))
    sparse.save_npz("v.npz", sparse.csr_matrix([[0, 1, 0], [0, 3, 1]]))
    Path("recs.csv").write_text("user,item,rank\na,x,1\na,y,2\n")
    Path("truth.csv").write_text("user,item,gain\na,y,1\n")
    Path("no.csv").write_text("a,b\n1,2\n")
    Path("groups.csv").write_text("item,group\nx,1\ny,2\n")
    Path("empty").mkdir()
    for side in ("recs", "truth"):
        pd.read_csv(f"{side}.csv").to_parquet(f"{side}.parquet")
    status, printed, said = command("evaluate", *words.split())
    assert (status, printed) == (2, "")
    assert said.splitlines()[-1].startswith("error: ")
    assert says in said.splitlines()[-1]
