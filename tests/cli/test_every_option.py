"""Each command with each of its options: it ends well, and not as without the option."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import typer
from reporting import draw_nothing
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.cli.commands import app
from sparse_eval.jobs.nights import decide_night

pytestmark = pytest.mark.filterwarnings("ignore")

BASES = {
    "demo": "--users 40 --items 30 -m ndcg@5",
    "run": "d/a/clicks.csv -m ndcg@5 --out o",
    "split": "d/a/clicks.csv --out o",
    "train": "d/a/clicks.csv --out o.npz",
    "tune": "d/a/clicks.csv -m ndcg@5 --out o",
    "score": "d/clicks.npz --train d/a/clicks.csv --validation d/b/clicks.csv -m ndcg@5",
    "evaluate": "d/recs.csv d/truth.csv -m ndcg@2",
    "recommend": "d/clicks.npz d/a/clicks.csv -k 2",
    "compare": "d/results -m ndcg@5",
    "gate": "d/rules.toml --candidate d/results/fair --champion d/results/poor",
    "report": "d/results -m ndcg@5",
    "metrics": "",
    "night": "night.toml --night 2019-12-24",
}

#: What the folder of the command night has.
NIGHT = """
out = "nights"
rules = "d/rules.toml"
checkpoints = "d/new.npz"
candidate = "newest"
champion = "d/former.npz"
split.input = "d/a/clicks.csv"
"""

#: What trains: a small model, where an option has none of its own.
SMALL = dict.fromkeys(("demo", "run", "train", "tune"), "--factors 2 --iterations 1")

#: What is given with an option, after what both calls have: other options, or another file.
VALUES = {
    "evaluate --allow-seen": "--train d/truth.csv /",
    "--alpha": "3",
    "--at": "2019-11-20",
    "tune --at": "--test-at 2019-12-01 / 2019-11-20",
    "--b": "--model bm25 / 0.1",
    "--average": "--request visit / user",
    "--before": "2019-12-03",
    "--by": "d/plans.csv",
    "--candidates": "d/a/some.csv",
    "evaluate --candidates": "d/recs.csv",
    "--candidate": "d/results/poor",
    "--champion": "d/results/good",
    "--checkpoints": "--validation d/b/clicks.csv / c",
    "--convention": "sklearn",
    "--correction": "bh",
    "--counts": "counted.txt --input-format adjacency --no-counts /",
    "--duplicates": "twice.csv / drop",
    "--encoding": "utf-16.csv / utf-16",
    "--event": "--events buy / type",
    "--events": "--event type / buy",
    "--factors": "3",
    "--fold-in": "--method users / 0.5",
    "--format": "json",
    "--fraction": "0.5",
    "--gain": "worth",
    "--gap": "--method temporal / 2D",
    "--input-format": "baskets.csv / adjacency",
    "--item": "page",
    "--item-groups": "-m calibration@2 --train d/truth.csv / d/groups.csv",
    "--item-vectors": "-m diversity(similarity=vectors)@2 / d/vectors.csv",
    "--items": "20",
    "--iterations": "2",
    "--k": "3",
    "--k1": "--model bm25 / 50",
    "--keep-best": "--validation d/b/clicks.csv --checkpoints c /",
    "--keep-repeats": "--method last-n /",
    "--fail-if-stale": "--timestamp timestamp / 99999D",
    "--nights": "d/nights",
    "--plan": "d/results",
    "--log": "d/nights",
    "night --champion": "d/third.npz",
    "night --seed": "1",
    "--night": "2019-12-25",
    "--learning-rate": "--model bpr / 0.5",
    "--level": "--format json / 0.9",
    "--log-format": "json",
    "--margin": "ndcg@5=2%",
    "--max-failed": "d/broken.npz / 1",
    "--memory": "1GB",
    "--method": "last-n",
    "--metric": "mrr@10",
    "train --metric": "--validation d/b/clicks.csv / mrr@10",
    "--min-item-interactions": "12",
    "--min-user-interactions": "12",
    "--min-value": "3",
    "--model": "bpr",
    "--monitor": "d/other.npz -m recall@20 / recall@20",
    "tune --monitor": "-m recall@20 / recall@20",
    "--n": "--method last-n / 2",
    "--neighbors": "--model cosine / 2",
    "--no-counts": "counted.txt --input-format adjacency --counts /",
    "--no-header": "numbers.csv --user 0 --item 1 /",
    "--no-relevant": "zero",
    "--only-known": "--method temporal /",
    "--order": "--method users / time",
    "--out": "other",
    "train --out": "other.npz",
    "recommend --out": "other.jsonl",
    "--patience": "--validation d/b/clicks.csv --iterations 9 / 1",
    "tune --patience": "--iterations 9 / 1",
    "--prometheus": "p.prom",
    "--propensity": "-m recall(weights=ips)@2 / d/propensity.csv",
    "--resume": "--validation d/b/clicks.csv --checkpoints c /",
    "--rank": "place",
    "--reference": "d/results/good",
    "--regularization": "9",
    "--request": "visit",
    "--safe-csv": "--format csv /",
    "evaluate --safe-csv": "--per-user --format csv /",
    "score --safe-csv": "d/other.npz --format csv /",
    "--score": "points",
    "--seed": "1",
    "--sep": "carets.csv / ^",
    "--skip-bad-lines": "bad.csv /",
    "--split": "d/split",
    "--test": "wilcoxon",
    "--test-at": "--at 2019-11-20 / 2019-12-01",
    "--threads": "1",
    "--threshold": "2",
    "--ties": "pessimistic",
    "--timestamp": "day",
    "--title": "Other",
    "--train": "d/a/clicks.csv",
    "evaluate --train": "-m novelty@2 / d/truth.csv",
    "--trials": "--factors 2,3 / 1",
    "--user": "guest",
    "evaluate --user": "--score points / guest",
    "--users": "20",
    "recommend --users": "U1,U2",
    "--validation": "d/b/clicks.csv",
    "train --validation": "--patience 1 / d/b/clicks.csv",
    "--value": "spent",
    "--weight": "--request visit / heavy",
    "--without-list": "exclude",
}

#: Defaults, and what makes no difference here: to these users, results, and recommendations.
SAME = {"--counts", "--header", "--memory", "--no-progress",
        "--threads", "evaluate --progress", "recommend --value", "evaluate --trec",
        "split --fail-if-stale", "night --promote", "night --rebase"}  # fmt: skip

#: Calls whose other words would conflict with the option.
OTHER_BASES = {
    "evaluate --trec": "d/a.run d/a.qrels -m ndcg@2",
    "score --split": "d/clicks.npz -m ndcg@5",
    "score --train": "d/clicks.npz --validation d/b/clicks.csv -m ndcg@5",
    "score --validation": "d/clicks.npz --train d/a/clicks.csv -m ndcg@5",
}

#: Outcomes by command line.
KNOWN = {}

#: Files with other users or items than the rest, that need models of their own.
LEARNT = {"counted": "counted.txt"}

GROUP = typer.main.get_command(app)
COMMANDS = vars(GROUP)["commands"]
OPTIONS = [
    f"{name} {option}"
    for name, command in COMMANDS.items()
    if name in BASES
    for parameter in command.params
    for option in (*parameter.opts, *parameter.secondary_opts)
    if option.startswith("--") and option != "--scheduler"  # see test_score.py
]


def write_events(folder, clicks):
    """Write events in every form that options of loading are for."""
    folder.mkdir()
    turned = clicks.iloc[::-1].reset_index(drop=True)
    frame = clicks.assign(
        guest=turned["user"], page=turned["item"], day=turned["timestamp"],
        value=clicks.index % 5 + 1, spent=clicks.index % 3 + 1,
        type=np.where(clicks.index % 3, "buy", "view"),
    )  # fmt: skip
    for name in ("clicks.csv", "bad.csv"):
        frame.to_csv(folder / name, index=False)
    pd.concat([frame, frame]).to_csv(folder / "twice.csv", index=False)
    with (folder / "bad.csv").open("a") as file:
        file.write("U1\n")
    frame.to_csv(folder / "carets.csv", sep="^", index=False)
    frame.to_csv(folder / "utf-16.csv", encoding="utf-16", index=False)
    ids = clicks[["user", "item"]]
    ids.iloc[::2].to_csv(folder / "some.csv", index=False)
    ids.to_csv(folder / "numbers.csv", header=False, index=False)
    baskets = clicks["item"].str[1:].groupby(clicks["user"].str[1:].astype(int)).unique()
    lines = [f"{len(items)} {' '.join(items)}\n" for items in baskets]
    (folder / "counted.txt").write_text("".join(lines))
    (folder / "baskets.csv").write_text("".join(f"u{line}" for line in lines))


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    clicks = se.datasets.synthetic(n_users=40, n_items=30, seed=1).to_frame()
    repeated = clicks.iloc[::7].assign(timestamp=clicks["timestamp"].max() + 1)
    late = clicks["timestamp"] > clicks["timestamp"].quantile(0.75)
    clicks.loc[clicks["item"] == "I3", "timestamp"] = clicks["timestamp"].max()
    write_events(folder / "a", pd.concat([clicks[~late], clicks[late][::2], repeated],
                                         ignore_index=True))  # fmt: skip
    write_events(folder / "b", clicks[late][1::2].reset_index(drop=True))
    for name in ("clicks.csv", *LEARNT.values()):
        format_ = "adjacency" if name in LEARNT.values() else "csv"
        counts = True if format_ == "adjacency" else None
        train = se.datasets.load(folder / "a" / name, format=format_, counts=counts).matrix()
        model = se.train_als(train, factors=4, iterations=2)
        se.save_model(model, (folder / name).with_suffix(".npz"))
    holdout = se.split.random(se.datasets.load(folder / "a" / "clicks.csv"), seed=0)
    holdout.save(folder / "split")
    other = se.train_als(se.datasets.load(folder / "a" / "clicks.csv").matrix(), factors=2)
    se.save_model(other, folder / "other.npz")
    (folder / "broken.npz").write_bytes(b"")
    (folder / "a.run").write_text("a Q0 x 1 2 als\na Q0 y 2 1 als\n")
    (folder / "a.qrels").write_text("a 0 y 1\n")
    recs = pd.DataFrame({"user": [*"aaabbbc"], "item": [*"xyzzxyx"], "score": [5, 5, 1, 9, 9, 9, 1],
                         "points": range(7), "place": [3, 2, 1, 2, 3, 1, 1]})  # fmt: skip
    truth = pd.DataFrame({"user": [*"aabcd"], "item": [*"yzxxy"], "gain": [1, 3, 2, 0, 1],
                          "worth": [2, 1, 1, 1, 1]})  # fmt: skip
    turned = {"user": [*"bbbaaac"], "item": [*"zyxxyzy"]}
    # One visit of each user, but two of b; a visit of b and c weighs more.
    visits = {"a": "a1", "b": "b1", "c": "c1", "d": "d1"}
    truth = pd.concat([truth, truth[truth["user"] == "b"].assign(item="x")])
    truth["visit"] = [*truth["user"].map(visits)[:-1], "b2"]
    recs.assign(guest=turned["user"], page=turned["item"], visit=recs["user"].map(visits)).to_csv(
        folder / "recs.csv"
    )
    heavy = truth["visit"].isin(["b1", "c1"]) + 1
    truth.assign(guest=truth["user"], page=truth["item"], heavy=heavy).to_csv(folder / "truth.csv")
    items = pd.DataFrame({"item": [*"xyz"]})
    items.assign(group=[0, 1, 0]).to_csv(folder / "groups.csv", index=False)
    items.assign(a=[1, 0, 1], b=[0, 1, 1]).to_csv(folder / "vectors.csv", index=False)
    items.assign(chance=[0.5, 0.2, 1]).to_csv(folder / "propensity.csv", index=False)
    gains = np.random.default_rng(0).random((240, 9)) < 0.3
    for name, seed in (("good", 1), ("fair", 3), ("poor", 2)):
        scores = np.random.default_rng(seed).random(gains.shape) + gains / seed
        lists = se.Rankings.from_scores(scores, k=5)
        ev = se.evaluate(lists, csr_matrix(gains * 1.0), "ndcg@5,mrr@10")
        ev.save(folder / "results" / name)
    rule = '[[rule]]\nmetric = "ndcg@5"\nnot_worse_by = "2%"\n'
    (folder / "rules.toml").write_text(rule)
    matrix = holdout.train  # models that do not say what they were trained on
    for seed, name in enumerate(("former", "new", "third")):
        draw = np.random.default_rng(seed).random
        factors = draw((matrix.shape[0], 3)), draw((matrix.shape[1], 3))
        plain = se.factor_model(*factors, users=matrix.users, items=matrix.items)
        se.save_model(plain, folder / f"{name}.npz")
    decide_night(
        folder / "nights", "2019-12-24", holdout, folder / "new.npz", folder / "rules.toml",
        candidate="newest", first={"champion": folder / "former.npz"}, progress=False,
    )  # fmt: skip
    pd.DataFrame({"user": range(240), "plan": ["free", "paid"] * 120}).to_csv(
        folder / "plans.csv", index=False
    )
    return folder


def left_in(folder):
    """Return the content of each file that holds no times, and the names of the others."""
    contents = {}
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.suffix in (".npz", ".html") and path.is_file() else b""
        if path.name == "study.jsonl":
            inputs = path.read_bytes().splitlines()[1]
            content = inputs.partition(b'"user_attr"')[2]
        contents[str(path.relative_to(folder))] = content
    return contents


@pytest.fixture
def outcome(command, data, tmp_path, monkeypatch):
    """Run a command in its own folder, once: its status, what it printed and said, and left."""

    def run(*words):
        if words not in KNOWN:
            folder = tmp_path / str(len(KNOWN))
            folder.mkdir()
            (folder / "d").symlink_to(data)
            if words[0] == "night":
                (folder / "night.toml").write_text(NIGHT)
            monkeypatch.chdir(folder)
            monkeypatch.setattr(typer.main, "get_command", lambda _: GROUP)  # made once
            draw_nothing(monkeypatch)
            status, printed, said = command(*words)
            KNOWN[words] = status, printed, re.sub(r"\d+\.\d s", "", said), left_in(folder)
        return KNOWN[words]

    return run


def cases():
    """Yield the options; all but the first of each command take long together."""
    commands = set()
    for given in OPTIONS:
        name, _ = given.split()
        yield pytest.param(given, marks=[pytest.mark.long] * (name in commands))
        commands.add(name)


@pytest.mark.parametrize("given", list(cases()))
def test_option(outcome, given):
    name, option = given.split()
    value = VALUES.get(given, VALUES.get(option, ""))
    context, _, value = f" {value} ".rpartition(" / ")
    base, words = OTHER_BASES.get(given, BASES[name]), shlex.split(context)
    if words and "." in words[0] and "/" not in words[0]:  # another file of events
        file = words.pop(0)
        base = base.replace("clicks.csv", file)
        if (stem := Path(file).stem) in LEARNT:
            base = base.replace("clicks.npz", f"{stem}.npz")
    small = "" if "--model" in words else SMALL.get(name, "")
    line = (name, *shlex.split(base), *small.split(), *words)
    status, printed, said, left = outcome(*line, option, *shlex.split(value))
    assert status in (0, 3, 4), said  # 3: not good enough, 4: undecided
    if option not in SAME and given not in SAME:
        assert (status, printed, said, left) != outcome(*line)
