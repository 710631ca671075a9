"""Test how commands read interactions, and what they report about it."""

import re

import pytest
from command_calls import masked

import sparse_eval as se

#: Options of a quick training.
SMALL = ("--factors", "4", "--iterations", "2")


def test_says_what_columns_were_taken_for(command, tmp_path):
    path, split = tmp_path / "events.csv", tmp_path / "s"
    path.write_text("visitorId,productId,Rating,eventTime,type\na,x,3,5,buy\na,y,1,6,view\n")
    status, _, said = command("split", path, "--method", "last-n", "--out", split)
    assert status == 0, said
    assert (
        "timestamps, 'visitorId' as user, 'productId' as item, 'Rating' as value, "
        "'eventTime' as timestamp, ignored 'type')" in said
    )
    holdout = se.Holdout.load(split)
    assert (holdout.train.csr + holdout.validation.csr).toarray().tolist() == [[3, 1]]


def test_separators_and_encodings(command, tmp_path):
    lines = ["user^item", *(f"zoë{n % 7}^{n}" for n in range(40))]
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines), encoding="latin-1")
    words = ("split", path, "--sep", "^", "--out", tmp_path / "s")
    status, _, said = command(*words, "--encoding", "latin-1")
    assert status == 0, said
    assert "warning" not in said
    assert se.Holdout.load(tmp_path / "s").users.tolist()[0] == "zoë0"
    status, _, said = command(*words)
    assert status == 2
    assert "(option --encoding)" in said
    path.write_text("\n".join(lines).replace("^", "\t"))
    words = ("split", path, "--sep", r"\t", "--encoding", "utf-8", "--out", tmp_path / "s")
    assert command(*words)[0] == 0


def test_errors_about_names_of_columns_name_options(command, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user,item,rating,plays\n1,2,3,4\n")
    status, _, said = command("split", path, "--out", tmp_path / "s")
    assert status == 2
    assert "(option --value)" in said
    path.write_text("user,movie,track\n1,2,3\n")
    assert "(option --item)\n" in command("split", path, "--out", tmp_path / "s")[2]


def test_unreadable_times_can_be_left_out(command, tmp_path):
    path, held = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text("user,item,date\n1,1,yesterday\n1,2,today\n2,1,today\n2,2,today\n")
    held.write_text("user,item,date\n1,3,today\n2,3,today\n")
    data = ("--train", path, "--validation", held, "-m", "ndcg@1")
    split = ("split", path, "--out", tmp_path / "s")
    for words in (
        ("train", path, *SMALL, "--out", tmp_path / "m.npz"),
        ("score", tmp_path / "m.npz", *data),
        (*split, "--fraction", 0.5),
    ):
        status, _, said = command(*words)
        assert status == 2
        assert "'date' was recognized as the timestamp by its name" in said
        assert "(option --timestamp)" in said
        assert command(*words, "--timestamp", "")[0] == 0
    status, _, said = command(*split, "--method", "last-n", "--timestamp", "")
    assert status == 2
    assert "(option --timestamp)" in said


def test_duplicated_and_missing_days_are_shown(command, tmp_path):
    folder = tmp_path / "log"
    folder.mkdir()
    for day, name in ((1, "a"), (2, "b"), (2, "b_again"), (4, "c")):
        lines = [f"u{n % 2},i{n + day},2026-01-0{day}" for n in range(6)]
        (folder / f"{name}.csv").write_text("\n".join(["user,item,ts", *lines]) + "\n")
    split = ("split", folder, "--out", tmp_path / "s", "--fraction", 0.5)
    status, _, said = command(*split)
    assert status == 0, said
    assert "6 duplicated events (same user, item, time and value)" in said
    assert f"{folder}/b.csv and {folder}/b_again.csv have the same content; remove a copy" in said
    assert (
        "events a day from 2026-01-01 to 2026-01-04: fewest 0 (2026-01-03), most 12 (2026-01-02)"
    ) in said
    said = command(*split, "--duplicates", "error")[2]
    assert "(option --duplicates)" in said


def test_types_of_events_have_weights(command, tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("user,item,type\n1,1,view\n1,2,buy\n1,3,shown\n2,1,buy\n2,2,view\n")
    words = ("split", path, "--method", "leave-k-out", "--out", tmp_path / "s", "--event", "type")
    assert command(*words, "--events", "view=1", "--events", "buy=5")[0] == 0
    holdout = se.Holdout.load(tmp_path / "s")
    assert (holdout.train.csr + holdout.validation.csr).toarray().tolist() == [[1, 5], [5, 1]]
    said = command(*words, "--events", "view=1", "--events", "buy")[2]
    assert "--events: give a weight for each type" in said


URIS = (
    "split {c} --out {out}",
    "run {a} {b} -m ndcg@5 --factors 2 --iterations 1 --out {out}",
    "train {a} --validation {b} -m ndcg@5 --factors 2 --iterations 1 --out {out}.npz",
    "tune {c} -m ndcg@5 --factors 2 --iterations 1 --trials 1 --out {out}",
    "evaluate {lists} {b} --train {a} -m mrr --out {out}",
    "score {model} --train {a} --validation {b} -m ndcg@5 --out {out}",
    "recommend {model} {a} -k 2",
)


@pytest.mark.parametrize("words", URIS, ids=[words.split()[0] for words in URIS])
def test_every_command_reads_uris(command, tmp_path, words):
    clicks = se.datasets.synthetic(n_users=60, n_items=40, seed=0).to_frame()
    lists = clicks[["user", "item"]].drop_duplicates().assign(score=1.0)
    frames = {"c": clicks, "a": clicks[:450], "b": clicks[450:], "lists": lists}
    for name, frame in frames.items():
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    model = se.baselines.popularity(clicks[:450])
    se.save_model(model, tmp_path / "model.npz")
    printed = []
    for place in ("", "file://"):
        paths = {name: f"{place}{tmp_path}/{name}.csv" for name in frames}
        paths |= {"out": tmp_path / f"out{place[:4]}", "model": tmp_path / "model.npz"}
        status, output, said = command(*words.format(**paths).split())
        assert status == 0, said
        output = masked(output.replace(str(paths["out"]), "OUT"))
        if words.startswith("tune"):  # the last column has seconds
            output = re.sub(r"(?m) +\S+$", "", output)
        printed.append(output)
    assert printed[0] == printed[1]


def test_secrets_of_uris_are_not_shown(command, tmp_path):
    for uri in ("foo://key:SECRET@bucket/a.csv", "s3://key:SECRET@/%zz?sig=SECRET"):
        for words in (("split", uri, "--out", tmp_path), ("evaluate", uri, uri)):
            status, _, said = command(*words)
            assert status == 2
            assert "SECRET" not in said
