"""Test the command evaluate: its files and options, against what Python's evaluate returns."""

import json

import pandas as pd
import pytest
from scipy.sparse import coo_matrix, csr_matrix, save_npz

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
    (tmp_path / "als.run").write_text(
        "ann Q0 x 1 0.9 tag\nann Q0 y 2 0.9 tag\nbob Q0 x 1 0.5 tag\n"
    )
    (tmp_path / "test.qrels").write_text("ann 0 x 1\nann 0 z 2\nbob 0 y 0\ncat 0 x 1\n")
    return tmp_path / "als.run", tmp_path / "test.qrels"


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
    others = [path.rename(path.with_suffix(".txt")) for path in trec]
    assert command("evaluate", *others, *options)[0] == 2
    assert (
        command("evaluate", *others, *options, "--trec", "--convention", "trec_eval")[1] == printed
    )
    for path, name in zip(others, trec, strict=True):
        path.rename(name)
    options = (*options, "--convention", "trec_eval", "--ties", "item")
    assert "ann,1.0,0.5" in command("evaluate", *trec, *options)[1]
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
@pytest.mark.parametrize(("words", "lists", "gains", "rules"), OPTIONS)
def test_options_mean_what_they_mean_in_python(means, tmp_path, words, lists, gains, rules):
    paths = tmp_path / "recs.csv", tmp_path / "truth.parquet"
    RECS.to_csv(paths[0], index=False)
    TRUTH.to_parquet(paths[1])
    names = ["ndcg@3"] if "average" in words else METRICS
    made = rankings(**(lists or {"rank": "place"}))
    expected = se.evaluate(made, relevance(**gains), se.Protocol(names, **rules))
    words = [*words.split(), *([] if gains else ["--gain", ""])]
    assert means(*paths, *COLUMNS, *words, "-m", ",".join(names)) == expected.mean()


def test_data_of_items(means, tmp_path):
    train = TRUTH.iloc[::-1].rename(columns={"worth": "ignored"})
    frames = {"recs": RECS, "truth": TRUTH, "train": train, "groups": GROUPS, "vectors": VECTORS,
              "chances": CHANCES, "weights": WEIGHTS}  # fmt: skip
    path = {name: tmp_path / f"{name}.csv" for name in frames}
    for name, frame in frames.items():
        frame.to_csv(path[name], index=False)
    GROUPS.to_parquet(tmp_path / "groups.parquet")
    GROUPS.set_index("page").to_parquet(tmp_path / "by_item.parquet")
    items = se.ItemData(
        groups=GROUPS.set_index("page")["genre"],
        vectors=VECTORS.set_index("page"),
        propensity=CHANCES.set_index("page")["chance"],
    )
    lists = rankings(rank="place")
    expected = se.evaluate(lists, relevance(), OF_ITEMS, train=relevance(), item_data=items).mean()
    words = (
        path["recs"], path["truth"], *COLUMNS, "--rank", "place", "--gain", "",
        "--train", path["train"], "--item-vectors", path["vectors"],
        "--propensity", path["chances"], "-m", ",".join(OF_ITEMS),
    )  # fmt: skip
    for groups in ("groups.csv", "groups.parquet", "by_item.parquet", "weights.csv"):
        assert means(*words, "--item-groups", tmp_path / groups) == pytest.approx(expected)


def test_ids_of_a_run_are_text_in_other_files_too(means, tmp_path):
    (tmp_path / "als.run").write_text("1 Q0 7 1 2 t\n1 Q0 8 2 1 t\n")
    (tmp_path / "test.qrels").write_text("1 0 8 1\n")
    (tmp_path / "groups.csv").write_text("item,group\n8,a\n7,b\n")
    words = ("--train", tmp_path / "test.qrels", "--item-groups", tmp_path / "groups.csv")
    found = means(tmp_path / "als.run", tmp_path / "test.qrels", *words, "-m", "calibration@2")
    assert 0 < found["calibration@2"] < 1


def test_a_folder_of_a_split_stands_for_its_two_files(means, tmp_path):
    holdout = se.split.random(se.datasets.synthetic(n_users=40, n_items=20, seed=0), seed=0)
    holdout.save(tmp_path / "split")
    lists = se.recommend(se.baselines.popularity(holdout), holdout, 5).drop(columns="score")
    lists.to_parquet(tmp_path / "lists.parquet")
    names = ["ndcg@5", "novelty@5", "coverage@5"]
    found = means(tmp_path / "lists.parquet", tmp_path / "split", "-m", ",".join(names))
    assert found == se.evaluate(lists, holdout.validation, names, train=holdout.train).mean()


#: Files of relevant items with rows of the same pair, and how to write them.
RATINGS = pd.DataFrame({"user": [0, 0, 0, 1, 1, 1], "item": [0, 0, 1, 0, 2, 2],
                        "gain": [2, 3, 5, 4, 5, 1]})  # fmt: skip
TRUTHS = {
    "truth.csv": lambda path: RATINGS.to_csv(path, index=False),
    "truth.parquet": lambda path: RATINGS.to_parquet(path),
    "truth.jsonl": lambda path: RATINGS.to_json(path, orient="records", lines=True),
    "coo.npz": lambda path: save_npz(path, ratings_matrix()),
    "csr.npz": lambda path: save_npz(path, unsummed(ratings_matrix())),
}


def ratings_matrix():
    return coo_matrix((RATINGS["gain"], (RATINGS["user"], RATINGS["item"])), shape=(2, 3))


def unsummed(matrix):
    return csr_matrix((matrix.data, matrix.col, [0, 3, 6]), matrix.shape)  # sorted by user


@pytest.mark.parametrize("name", TRUTHS)
def test_a_threshold_is_of_rows_before_they_are_summed(means, tmp_path, name):
    TRUTHS[name](tmp_path / name)
    if name.endswith("npz"):
        lists = tmp_path / "lists.npz"
        save_npz(lists, csr_matrix([[1, 2, 0], [0, 2, 1]]))
    else:
        lists = tmp_path / "lists.csv"
        lists.write_text("user,item,rank\n0,0,1\n0,1,2\n1,2,1\n1,1,2\n")
    # Relevant are item 1 of user 0, and items 0 (gain 4) and 2 (gain 5) of user 1.
    expected = {"num_rel": 1.5, "precision@2": 0.5, "dcg@1": 2.5}
    found = means(lists, tmp_path / name, "--threshold", "4", "-m", ",".join(expected))
    assert found == expected
