"""The command night: what it decides, promotes, keeps and refuses, whatever happens meanwhile."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from systems import need_posix

import sparse_eval as se
from sparse_eval.core.atomic_files import locked_folder

CLICKS = se.datasets.synthetic(n_users=300, n_items=60, seed=0)
NIGHTS = ("2026-11-01", "2026-11-02", "2026-11-03")

SETTINGS = """
out = "nights"
rules = "rules.toml"
checkpoints = "models"
candidate = "best of ndcg@10"
champion = "fair.npz"
split = "split/{night}"
prometheus = "gauges.prom"
"""
RULES = """
min_users = 100
[[rule]]
metric = "ndcg@10"
not_worse_by = "5%"
"""


def model(strength, seed=0):
    """Return a model that knows all clicks, the better the stronger; training has no part in it."""
    matrix = CLICKS.matrix()
    noise = np.random.default_rng(seed).random(matrix.shape)
    scores = strength * (matrix.csr.toarray() > 0) + noise
    return se.factor_model(scores, np.eye(matrix.shape[1]), users=matrix.users, items=matrix.items)


@pytest.fixture(scope="module")
def master(tmp_path_factory):
    folder = tmp_path_factory.mktemp("night")
    for seed, night in enumerate(NIGHTS):
        se.split.random(CLICKS, seed=seed).save(folder / "split" / night)
    (folder / "models").mkdir()
    for name, strength in (("fair", 0.3), ("models/good", 0.6), ("models/poor", 0.05)):
        se.save_model(model(strength), folder / f"{name}.npz")
    (folder / "night.toml").write_text(SETTINGS)
    (folder / "rules.toml").write_text(RULES)
    return folder


class Folder:
    """A folder in which commands run."""

    def __init__(self, command):
        self.command = command
        self.said = ""

    def night(self, number=0, *words, status=0, says="", night=None):
        """Run a night, check its status and what it says, and return what it prints."""
        night = night or NIGHTS[number]
        ended, printed, self.said = self.command("night", "night.toml", "--night", night, *words)
        assert ended == status, self.said
        assert says in self.said, self.said
        return printed

    @property
    def rows(self):
        path = Path("nights/gate.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @staticmethod
    def add(name, strength, seed=1):
        """Add a checkpoint to the candidates."""
        se.save_model(model(strength, seed), f"models/{name}.npz")

    @staticmethod
    def change(name, old, new):
        path = Path(name)
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


@pytest.fixture
def folder(master, tmp_path, monkeypatch, command):
    shutil.copytree(master, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return Folder(command)


def stem(one):
    return Path(one["file"]).stem


def after(row):
    """Return the champion and the reference of the next night."""
    return stem(row["next"]["champion"]), stem(row["next"]["reference"])


def named(*words):
    """Return the words that name a champion for a night."""
    return ("--champion", *words)


def test_nights_promote_and_keep_what_they_decided(folder):
    printed = folder.night(0, says="passed, and not promoted: repeat the command with --promote")
    assert "verdict: passed" in printed
    assert after(folder.rows[-1]) == ("fair", "fair")
    folder.night(0, "--promote", night="20261101", says="promoted: from the next night on")
    before = Path("nights/gate.jsonl").read_bytes()
    folder.night(0)  # does not take the promotion back
    folder.night(0, "--promote", night="2026-W44-7")
    assert Path("nights/gate.jsonl").read_bytes() == before
    assert after(folder.rows[-1]) == ("good", "good")
    folder.add("worse", 0.2)
    printed = json.loads(folder.night(1, "--promote", "--format", "json", status=3))
    assert [test["verdict"] for test in printed["tests"]] == ["failed"]
    row = folder.rows[-1]
    assert (row["slot"], stem(row["candidate"]), row["promoted"]) == (NIGHTS[1], "worse", False)
    assert row["metrics"]["champion"]["ndcg@10"]["mean"] > 0.3
    log = json.loads(folder.command("gate", "--log", "nights", "--format", "json")[1])
    assert [
        (one["night"], one["candidate"], one["verdict"], one["promoted"], one["next_champion"])
        for one in log
    ] == [
        (NIGHTS[0], "good", "passed", True, "good"), (NIGHTS[1], "worse", "failed", False, "good"),
    ]  # fmt: skip
    folder.night(0, status=2, says=f"night {NIGHTS[1]} has been decided already")


def test_candidates_are_new(folder):
    """What was scored in an earlier night is not tried again until it passes by chance."""
    folder.night(0, "--promote")
    folder.night(1, status=2, says="there is no new checkpoint: each was scored in an earlier")
    folder.add("late", 0.65)
    folder.night(1, "--promote")
    assert {Path(file).stem for file in Path("nights", NIGHTS[1]).glob("*/")} == {"good", "late"}
    assert after(folder.rows[-1])[0] == "late"
    folder.night(1)  # the candidate of this night is new when it is repeated


def test_the_reference_follows_only_a_better_model(folder):
    folder.night(0, "--promote")
    folder.change("rules.toml", "5%", "30%")
    folder.add("like_good", 0.6)
    folder.night(1, "--promote", says="promoted")
    assert after(folder.rows[-1]) == ("like_good", "good")
    folder.add("third", 0.6, seed=2)
    printed = json.loads(folder.night(2, "--format", "json"))
    assert {test["against"] for test in printed["tests"]} == {"champion", "reference"}
    for _ in range(2):  # the second time without the option
        folder.night(2, *["--rebase", "--promote"] * (not _))
        # The champion is the reference; the candidate is not shown to be better than that.
        assert after(folder.rows[-1]) == ("third", "like_good")


def test_a_champion_that_is_named(folder):
    folder.night(0, *named("models/poor.npz"), says="from now on, the champion is")
    assert after(folder.rows[-1]) == ("poor", "poor")
    assert stem(folder.rows[-1]["champion"]) == "poor"  # of this night too: it is not decided
    folder.night(0, "--promote")
    assert after(folder.rows[-1])[0] == "good"
    folder.night(0, *named("fair.npz"))
    assert after(folder.rows[-1])[0] == "fair"
    assert stem(folder.rows[-1]["champion"]) == "poor"
    folder.night(0, "--promote")  # what a person decided stays
    assert after(folder.rows[-1])[0] == "fair"
    log = json.loads(folder.command("gate", "--log", "nights", "--format", "json")[1])
    assert [(one["verdict"], one["next_champion"]) for one in log] == [("passed", "fair")]
    folder.night(1, "--promote", *named("fair.npz"), status=2, says="--champion decides nothing")
    Path("fair.npz").unlink()
    folder.night(1, status=2, says="name another with --champion")
    folder.night(1, *named("models/poor.npz"))
    folder.add("late", 0.3)
    folder.night(1, "--rebase")
    folder.night(2, *named("nowhere.npz"), status=2, says="the champion nowhere.npz does not exist")


def test_the_newest_is_judged_even_if_another_is_better(folder):
    folder.change("night.toml", "best of ndcg@10", "newest")
    os.utime("models/poor.npz", ns=(time.time_ns() + 10**9,) * 2)
    folder.night(0, status=3)
    assert stem(folder.rows[-1]["candidate"]) == "poor"
    Path("models/broken.npz").write_bytes(b"")
    os.utime("models/broken.npz", ns=(time.time_ns() + 2 * 10**9,) * 2)
    folder.night(0, status=2, says="the candidate models/broken.npz could not be scored")
    assert len(folder.rows) == 1


def test_a_broken_checkpoint_keeps_a_good_one_from_being_promoted(folder):
    Path("models/broken.npz").write_bytes(b"")
    says = "1 checkpoint could not be scored; repair or remove, and repeat the night"
    folder.night(0, "--promote", status=1, says=says)
    assert "warning: models/broken.npz: BadZipFile" in folder.said
    assert after(folder.rows[-1])[0] == "fair"
    Path("models/broken.npz").unlink()
    folder.night(0, "--promote", says="promoted")
    assert after(folder.rows[-1])[0] == "good"


def test_a_night_is_decided_again_on_other_data(folder):
    folder.night(0)
    shutil.rmtree(f"split/{NIGHTS[0]}")
    shutil.copytree(f"split/{NIGHTS[1]}", f"split/{NIGHTS[0]}")
    folder.night(0, says=f"the results in nights/{NIGHTS[0]} are replaced: train=")
    folder.night(0)
    assert "replaced" not in folder.said
    assert len(folder.rows) == 2
    assert folder.rows[0]["inputs"] != folder.rows[1]["inputs"]
    folder.change("rules.toml", "ndcg@10", "recall@5")
    folder.night(0, says="are replaced: metrics=")


def test_gauges_and_page(folder):
    pytest.importorskip("matplotlib")
    folder.change(
        "night.toml", 'prometheus = "gauges.prom"', 'prometheus = "g.prom"\npage = "r.html"'
    )
    folder.night(0, "--promote")
    assert 'gate{job="g",split="nights",verdict="passed"} 1.0' in Path("g.prom").read_text()
    folder.add("worse", 0.2)
    folder.night(1, status=3)
    assert 'gate{job="g",split="nights",verdict="failed"} 1.0' in Path("g.prom").read_text()
    text = Path("r.html").read_text(encoding="utf-8")
    assert f"The gate of the last night, {NIGHTS[1]}, failed." in text
    assert text.count("by night") >= 1
    assert f'<th scope="row">{NIGHTS[0]}</th>' in text
    folder.night(2, *named("models/good.npz"))  # which decides nothing
    words = ("report", f"nights/{NIGHTS[1]}", "--nights", "nights", "--out", "n.html")
    assert folder.command(*words)[0] == 0
    text = Path("n.html").read_text(encoding="utf-8")
    assert "The gate of the last night" not in text
    assert f'<th scope="row">{NIGHTS[2]}</th><td class="text"><bdi>–</bdi>' in text
    assert "not decided" in text
    assert "None" not in text
    marks = se.plots.nights("nights", "ndcg@10").get_xticklabels()
    assert [mark.get_text() for mark in marks] == [*NIGHTS[:2]]
    with locked_folder(Path("nights")):
        folder.night(2, status=75, says="another process writes to this folder")
    assert "last_run_success{" in Path("g.prom").read_text()
    assert "gate{" not in Path("g.prom").read_text()


def logs(newest):
    """Write a log that ends at a moment; one that ends later has the same events before."""
    clicks = CLICKS.to_frame()
    begin = pd.Timestamp("2026-10-25")
    clicks["timestamp"] = begin + pd.to_timedelta(np.arange(len(clicks)) * 300, "s")
    clicks[clicks["timestamp"] <= newest].to_csv("logs.csv", index=False)


def test_a_night_splits_the_log_as_far_as_its_end(folder):
    table = 'at = "{night}"\nbefore = "{tomorrow}"\ninput = "logs.csv"\nfail_if_stale = "36h"\n'
    folder.change("night.toml", 'split = "split/{night}"', "")
    folder.change("night.toml", 'gauges.prom"', f'gauges.prom"\n[split]\n{table}')
    for newest in ("2026-11-01T23:59", "2026-11-05"):  # the second time the log has grown
        logs(pd.Timestamp(newest))
        folder.night(0, says=f"cut at {NIGHTS[0]}")
        assert len(folder.rows) == 1
    logs(pd.Timestamp("2026-11-01T11:59"))
    folder.night(1, status=2, says="hours before the end of the night, and fail_if_stale is 36h")
    folder.change("night.toml", "at =", "att =")
    folder.night(1, status=2, says="[split] has the key 'att'; did you mean at?")


def test_words_for_dates(folder):
    today = pd.Timestamp.now("UTC").normalize()
    for word, day in (("yesterday", today - pd.Timedelta("1D")), ("today", today)):
        folder.add(word, 0.5, seed=day.day)
        shutil.copytree(f"split/{NIGHTS[0]}", f"split/{day:%Y-%m-%d}")
        folder.night(night=word)
        assert folder.rows[-1]["slot"] == f"{day:%Y-%m-%d}"
    folder.night(night="tonight", status=2, says="today or yesterday (option --night)")


def few_users(folder):
    folder.change("rules.toml", "100", "1000")


def unknown_metric(folder):
    folder.change("rules.toml", "ndcg@10", "ndgc@10")


def unknown_key(folder):
    folder.change("rules.toml", "not_worse_by", "no_worse_by")


def unknown_setting(folder):
    folder.change("night.toml", "champion", "champoin")


def wrong_kind(folder):
    folder.change("night.toml", '"models"', "7")


def no_rules(folder):
    Path("rules.toml").unlink()


def no_split(folder):
    shutil.rmtree("split")


def no_checkpoint(folder):
    shutil.rmtree("models")
    Path("models").mkdir()


def nothing_new(folder):
    for name in ("good", "poor"):
        shutil.copy("fair.npz", f"models/{name}.npz")


def no_champion(folder):
    folder.change("night.toml", 'champion = "fair.npz"', "")


def champion_is_gone(folder):
    folder.night(0, "--promote")
    Path("models/good.npz").unlink()


def champion_has_changed(folder):
    folder.night(0, "--promote")
    shutil.copy("models/poor.npz", "models/good.npz")


def champion_is_old(folder):
    folder.change("night.toml", "out =", 'max_age = "30D"\nout =')
    os.utime("fair.npz", (0, 0))


def broken_champion(folder):
    Path("fair.npz").write_bytes(b"")


def reference_is_gone(folder):
    folder.change("night.toml", "out =", 'reference = "models/poor.npz"\nout =')
    folder.night(0)
    Path("models/poor.npz").unlink()


def trained_on_tonight(folder):
    se.save_model(se.train_als(CLICKS.matrix(), factors=2, iterations=1), "fair.npz")


def candidate_trained_on_tonight(folder):
    shutil.rmtree("models")
    Path("models").mkdir()
    se.save_model(se.train_als(CLICKS.matrix(), factors=2, iterations=1), "models/als.npz")


def other_catalogue(folder):
    folder.change("rules.toml", "min_users", "max_unknown_items = 0.1\nmin_users")
    known = model(0.3)
    names = [f"other {item}" for item in range(known.item_factors.shape[0] - 20)]
    factors = known.user_factors, known.item_factors
    items = [*CLICKS.matrix().items.index[:20], *names]
    users = CLICKS.matrix().users
    se.save_model(se.factor_model(*factors, users=users, items=items), "models/good.npz")
    Path("models/poor.npz").unlink()


def date_in_out(folder):
    folder.change("night.toml", 'out = "nights"', 'out = "nights/{night}"')


def damaged_ledger(folder):
    folder.night(0)
    text = Path("nights/gate.jsonl").read_text()
    Path("nights/gate.jsonl").write_text(text.replace("passed", "failed"))


def choice_of_candidate(folder):
    folder.change("night.toml", "best of ndcg@10", "best")


FAULTS = {
    few_users: "the rules ask for min_users = 1,000",
    unknown_metric: "there is no metric 'ndgc'; did you mean 'ndcg'",
    unknown_key: "rule 1 has the key 'no_worse_by'; did you mean not_worse_by?",
    unknown_setting: "the file of settings has the key 'champoin'; did you mean champion?",
    wrong_kind: "checkpoints is 7; expected a list of text",
    no_rules: "rules.toml: cannot be read: No such file",
    no_split: f"split/{NIGHTS[0]}",
    no_checkpoint: "models: contains no .npz file",
    nothing_new: "there is no new checkpoint: each was scored in an earlier night, or has the",
    no_champion: "there is no champion yet: name the checkpoint in production",
    champion_is_gone: "the champion <folder>/models/good.npz does not exist; restore it, or name",
    champion_has_changed: "the champion <folder>/models/good.npz has changed since it was recorded",
    champion_is_old: "and max_age is 30D. Name a newer one with --champion",
    broken_champion: "fair.npz: ",
    reference_is_gone: "models/poor.npz does not exist; restore it, or replace it with",
    trained_on_tonight: "the champion <folder>/fair.npz was trained on pairs that are not in the",
    candidate_trained_on_tonight: "the candidate models/als.npz was trained on pairs that are not",
    other_catalogue: "the candidate does not know the items of",
    date_in_out: "out is the folder of all nights; it has no date",
    damaged_ledger: "gate.jsonl, line 1: is damaged",
    choice_of_candidate: "candidate is 'best'; expected 'newest', or as 'best of ndcg@10'",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_faults_end_the_night_with_a_sentence(folder, fault, tmp_path):
    fault(folder)
    before = folder.rows
    number = int(bool(before))
    folder.night(number, status=2, says=FAULTS[fault].replace("<folder>", str(tmp_path)))
    if fault is not damaged_ledger:
        assert folder.rows == before
    assert "last_run_success{" in (
        Path("gauges.prom").read_text() if before else "last_run_success{"
    )


@pytest.mark.long
def test_a_night_that_is_killed_has_promoted_or_not(folder):
    need_posix()
    words = [Path(sys.executable).with_name("sparse-eval"), "night", "night.toml", "--promote"]
    words += ["--night", NIGHTS[0]]
    start = time.monotonic()
    subprocess.run(words, check=True, capture_output=True)
    seconds = time.monotonic() - start
    (whole,) = folder.rows
    states = set()
    for moment in range(30):
        shutil.rmtree("nights")
        with subprocess.Popen(
            words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as process:
            time.sleep(seconds * (moment + 1) / 29)
            process.send_signal(signal.SIGKILL)
        # A line that is cut off is no decision; the next night would ignore it.
        ledger = Path("nights/gate.jsonl")
        lines = ledger.read_text().split("\n")[:-1] if ledger.exists() else []
        found = [json.loads(line) for line in lines]
        states.add(len(found))
        assert all(row["promoted"] and after(row) == ("good", "good") for row in found)
        folder.night(0, "--promote")
        (row,) = folder.rows
        assert row | {"time": whole["time"], "check": whole["check"]} == whole
    assert 0 in states  # some were killed before the line was written
