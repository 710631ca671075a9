"""The net of the command line: each command, its exit status, lines and files.

`python tests/helpers/command_calls.py` writes ``tests/net/commands.json``, and
`tests/net/test_net.py` compares. Models are not trained, because numbers of training depend on the
processor; of commands that train only the status and the files are kept. Times are left out.
"""

import contextlib
import io
import json
import os
import re
import shutil
import tempfile
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
from exact import exact_model
from public_calls import NET

import sparse_eval as se
from sparse_eval.cli import main

COMMANDS = """
evaluate d/lists.csv d/truth.csv -m ndcg@5 -m recall@10 -m coverage@5
evaluate d/lists.csv d/truth.csv -m ndcg@5 --format json
evaluate d/lists.csv d/truth.csv -m ndcg@5 --per-user --format csv
evaluate d/lists.parquet d/truth.parquet -m mrr,map --train d/train.csv --out o
evaluate d/lists.csv d/truth.csv -m ndcg@5 --ties average --threshold 2
evaluate d/lists.csv d/truth.csv -m novelty@5 --train d/train.csv --convention recbole
evaluate d/lists.csv d/split -m hit_rate@3
evaluate d/a.run d/a.qrels -m ndcg_cut_10,map --convention trec_eval
evaluate d/lists.csv d/truth.csv -m ndcg@5 --candidates d/train.csv --judged-only
score d/a.npz --split d/split -m ndcg@10,coverage@10
score d/a.npz --split d/split -m ndcg@10 --format json
score d/a.npz d/b.npz --split d/split -m ndcg@10 --out o
score d/a.npz d/b.npz d/broken.npz --split d/split -m ndcg@10 --max-failed 1 --format csv
score d/a.npz --train d/train.csv --validation d/truth.csv -m auc --allow-seen
score d/a.npz d/none.npz --split d/split -m ndcg@10
recommend d/a.npz d/train.csv -k 3 --users U1,U2
recommend d/a.npz d/train.csv -k 3 --format csv
compare d/results -m ndcg@5
compare d/results/a d/results/b -m ndcg@5,mrr --format json
compare d/results -m ndcg@5 --by d/plans.csv --correction bh
compare d/results -m ndcg@5 --margin 1% --format csv
gate d/rules.toml --candidate d/results/b --champion d/results/a --format json
compare d/results --test wilcoxon -m ndcg@5 --level 0.9
report d/results --out o.html -m ndcg@5 --title Models
split d/clicks.csv --out o
split d/clicks.csv --method temporal --fraction 0.2 --out o
split d/clicks.csv --method temporal --at 2019-11-20 --gap 1D --test-at 2019-12-01 --out o
split d/clicks.csv --method last-n --n 2 --out o
split d/clicks.csv --method leave-k-out --n 1 --only-known --out o
split d/clicks.csv --method users --fraction 0.3 --out o
split d/clicks.csv --min-user-interactions 3 --min-item-interactions 3 --out o
split d/twice.csv --duplicates drop --out o
split d/missing.csv --out o
split d/clicks.csv --method magic --out o
split d/behaviors.tsv --method random --fraction 0.2 --out o
split d/mixed --out o
split d/cut --out o
evaluate d/lists.csv d/half -m ndcg@5
score d/checkpoints --split d/split -m ndcg@10
score d/checkpoints --split d/split -m ndcg@10 --max-failed 2 --format csv
score d/a.npz --split d/half -m ndcg@10
compare d/damaged -m ndcg@5
report d/damaged --out o.html -m ndcg@5
evaluate d/cut d/truth.csv -m ndcg@5
run d/clicks.csv -m ndcg@5 --factors 2 --iterations 1 --out o
train d/train.csv --validation d/truth.csv -m ndcg@5 --factors 2 --iterations 1 --out o.npz
tune d/clicks.csv -m ndcg@5 --factors 2 --iterations 1 --trials 1 --out o
demo --users 50 --items 40 --factors 2 --iterations 1 -m ndcg@5 --out o
metrics
metrics ndcg
metrics --convention trec_eval
metrics ndgc
nonsense
evaluate
""".strip().splitlines()

#: Commands whose numbers and warnings come from training.
TRAINS = ("run", "train", "tune", "demo")


def write_inputs(folder):
    """Write clicks, a split, lists, models that were not trained, and results."""
    clicks = se.datasets.synthetic(n_users=60, n_items=40, seed=0)
    frame = clicks.to_frame()
    frame.to_csv(folder / "clicks.csv", index=False)
    pd.concat([frame, frame[::3]]).to_csv(folder / "twice.csv", index=False)
    holdout = se.split.random(clicks, seed=0)
    holdout.save(folder / "split")
    parts = []
    for part in (holdout.train, holdout.validation):
        pairs = part.csr.tocoo()
        ids = {"user": part.users.index.take(pairs.row), "item": part.items.index.take(pairs.col)}
        parts.append(pd.DataFrame(ids))
    parts[1]["gain"] = np.arange(len(parts[1])) % 3 + 1
    rng = np.random.default_rng(0)
    lists = pd.concat([*parts, parts[1]])[["user", "item"]].drop_duplicates()
    lists["score"] = rng.integers(0, 50, len(lists)) / 8
    for name, table in {"train": parts[0], "truth": parts[1], "lists": lists}.items():
        table.to_csv(folder / f"{name}.csv", index=False)
        table.to_parquet(folder / f"{name}.parquet", index=False)
    se.trec.write_run(se.Rankings.from_frame(lists, score="score"), folder / "a.run")
    se.trec.write_qrels(se.Relevance.from_frame(parts[1], gain="gain"), folder / "a.qrels")
    for seed, name in enumerate("ab"):
        model = exact_model(holdout.train, seed=seed)
        se.save_model(model, folder / f"{name}.npz")
        ev = se.evaluate_model(model, holdout, ["ndcg@5", "mrr"])
        ev.save(folder / "results" / name)
    (folder / "broken.npz").write_bytes(b"no zip")
    write_damage(folder)
    plans = pd.DataFrame({"user": holdout.users.tolist()})
    plans["plan"] = np.where(plans.index % 2, "free", "paid")
    text = '[[rule]]\nmetric = "ndcg@5"\nnot_worse_by = "5%"\nsegments = "plans.csv"\n'
    (folder / "rules.toml").write_text(text)
    plans.to_csv(folder / "plans.csv", index=False)


def write_damage(folder):
    """Write MIND's log, and folders of which a file is damaged, missing, or of another kind."""
    mind = Path(__file__).parents[2] / "data" / "mind_small" / "behaviors.tsv"
    shutil.copy(mind, folder / "behaviors.tsv")
    for name in ("mixed", "cut", "checkpoints"):
        (folder / name).mkdir()
    for name in ("mixed", "cut"):
        shutil.copy(folder / "clicks.csv", folder / name / "1.csv")
        shutil.copy(folder / "lists.csv", folder / name / "2.csv")
    (folder / "cut" / "2.csv").write_text('user,item,timestamp\nU1,"N1,5\n')
    for name in ("a.npz", "b.npz", "broken.npz"):
        shutil.copy(folder / name, folder / "checkpoints")
    content = (folder / "a.npz").read_bytes()
    (folder / "checkpoints" / "cut.npz").write_bytes(content[: len(content) // 2])
    (folder / "checkpoints" / "notes.txt").write_text("trained on Monday\n")
    shutil.copytree(folder / "split", folder / "half")
    (folder / "half" / "train.npz").unlink()
    shutil.copytree(folder / "results", folder / "damaged")
    for file in (folder / "damaged" / "b").iterdir():
        if file.suffix != ".json":
            file.write_bytes(file.read_bytes()[:-20])


def outcomes():
    """Run all commands, each in a folder with the inputs as "d"; return what each leaves."""
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        whole = Path(place, "whole")
        whole.mkdir()
        write_inputs(whole)
        return {words: _outcome(words, whole) for words in COMMANDS}


def _outcome(words, inputs):
    folder = inputs.with_name("run")
    shutil.copytree(inputs, folder / "d")
    before = {file.relative_to(folder).as_posix() for file in folder.rglob("*")}
    printed, said = io.StringIO(), io.StringIO()
    names = {name: value for name, value in os.environ.items() if "SPARSE_EVAL" not in name}
    with (
        contextlib.chdir(folder),
        mock.patch.dict(os.environ, names | {"COLUMNS": "100"}, clear=True),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(said),
    ):
        status = 0
        try:
            main(words.split())
        except SystemExit as stop:
            status = int(stop.code or 0)
    files = {
        file.relative_to(folder).as_posix(): _content(file)
        for file in folder.rglob("*")
        if file.relative_to(folder).as_posix() not in before
    }
    shutil.rmtree(folder)
    if words.split()[0] in TRAINS:
        return {"status": status, "files": sorted(files)}
    lines = [masked(text.getvalue()).splitlines() for text in (printed, said)]
    return {"status": status, "out": lines[0], "err": lines[1], "files": files}


def _content(file):
    """Return the lines of a small table; other files have times, or are for browsers."""
    if file.name == "per_user.parquet":
        return pd.read_parquet(file).head(20).to_csv(index=False).splitlines()
    is_table = file.suffix == ".csv" and file.name != "table.csv"
    return file.read_text().splitlines()[:20] if is_table else None


def masked(text):
    """Return text without colours, digests of files, and times, also of the column seconds."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    text = re.sub(r"(?<![.\w])[0-9a-f]{16,}\b", "DIGEST", text)
    text = re.sub(r"(?m)(?<=,)\d+\.\d{1,3}(?=,)| +\d+\.\d$", "TIME", text)
    return re.sub(r"\d+(\.\d+)? (s|ms|min)\b", "TIME", text)


if __name__ == "__main__":
    found = {words: json.dumps(outcome) for words, outcome in outcomes().items()}
    lines = ",\n".join(f"{json.dumps(words)}: {outcome}" for words, outcome in found.items())
    (NET / "commands.json").write_text(f"{{\n{lines}\n}}\n")
