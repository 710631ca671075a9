"""Ids and names cannot control a terminal, and reach files and pipes unchanged."""

import ast
import csv
import io
import json
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import sparse_eval as se
from sparse_eval import cli
from sparse_eval.core.messages import printable

pytestmark = pytest.mark.long

#: Sequences that set a window's title and colours, clear the screen and reverse text.
NASTY = "\x1b]0;title\x07\x1b[31m\x1b[2J\x9b1m\t\b\x7f\u202e\u2066"
USERS = [f"u{n}{NASTY}" for n in range(4)]
ITEMS = [f"i{n}{NASTY}" for n in range(5)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Go to a folder with a split, models, lists and segments, all with such names."""
    monkeypatch.chdir(tmp_path)
    pairs = [(user, item) for u, user in enumerate(USERS) for item in ITEMS[u % 2 :: 2]]
    clicks = pd.DataFrame(pairs, columns=["user", "item"])
    holdout = se.split.random(clicks, seed=0)
    holdout.save("split")
    Path("models").mkdir()
    factors = np.eye(4, 3), np.eye(len(holdout.items), 3)
    model = se.factor_model(*factors, users=holdout.users, items=holdout.items)
    for name in ("a", "b"):
        se.save_model(model, f"models/{name}{NASTY}.npz")
        se.evaluate_model(model, holdout, "ndcg@2", keep="lists").save(f"results/{name}{NASTY}")
    segments = pd.DataFrame({"user": USERS, "plan": [f"p{NASTY}", f"q{NASTY}"] * 2})
    for name, table in (("lists", clicks.assign(score=1.0)), ("truth", clicks), ("by", segments)):
        table.to_csv(f"{name}.csv", index=False, quoting=csv.QUOTE_ALL)


#: Commands that print ids or names, and the columns that have them.
COMMANDS = {
    "recommend": ("recommend models/a.npz split -k 2", ("user", "item")),
    "evaluate": ("evaluate lists.csv truth.csv -m ndcg@2 --per-user", ("user",)),
    "score": ("score models --split split -m ndcg@2", ("file",)),
    "compare": ("compare results -m ndcg@2", ("a", "b")),
    "by": ("compare results -m ndcg@2 --by by.csv", ("segment",)),
}


def words_of(name):
    words = COMMANDS[name][0].split()
    return [word.replace("a.npz", f"a{NASTY}.npz") for word in words]


def has_controls(text):
    return printable(text) != text


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("shape", ["table", "markdown", "csv", "json"])
@pytest.mark.parametrize("terminal", [False, True])
def test_ids_are_escaped_for_people_and_whole_for_programs(
    command, folder, monkeypatch, name, shape, terminal
):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    status, printed, said = command(*words_of(name), "--format", shape)
    assert status == 0, said
    assert not has_controls(said)
    if shape in ("table", "markdown") or terminal:
        assert not has_controls(printed)
        assert "1b[31m" in printed
    if shape == "json":  # on a terminal too
        rows = json.loads(printed)
        rows = rows["differences"] if isinstance(rows, dict) else rows
    elif shape in ("table", "markdown") or terminal:
        return
    else:
        rows = list(csv.DictReader(io.StringIO(printed)))
    texts = [str(row[column]) for row in rows for column in COMMANDS[name][1]]
    assert texts
    whole = repr(NASTY)[1:-1] if name == "score" else NASTY  # a sweep escapes names of files
    assert all(text.removesuffix(".npz").endswith(whole) for text in texts), texts


def test_what_is_below_a_comparison_fits_the_terminal(command, folder, monkeypatch):
    words = words_of("compare")
    _, whole, _ = command(*words)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "70")
    _, printed, _ = command(*words)
    below = printed.split("\n\n", 1)[1]
    assert max(map(len, below.splitlines())) <= 70
    assert below.split() == whole.split("\n\n", 1)[1].split()


def test_messages_are_escaped(command, folder):
    for words in (
        (*words_of("recommend"), "--users", f"nobody{NASTY}", "--debug"),
        ("score", "models", "--split", f"missing{NASTY}"),
        (*words_of("score"), "--monitor", f"ndcg{NASTY}"),
    ):
        status, _, said = command(*words)
        assert status in (2, 3)
        assert not has_controls(said), said
        assert "u001b" in said or "x1b" in said


def test_escapes_only_control_characters():
    signs = list(map(chr, range(sys.maxunicode + 1)))
    embeds = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    escaped = {
        sign
        for sign in signs
        if (unicodedata.category(sign) == "Cc" and sign != "\n")
        or unicodedata.bidirectional(sign) in embeds
    }
    assert {*signs} - {*printable("".join(signs))} == escaped
    assert all(json.loads(f'"{printable(sign)}"') == sign for sign in escaped)


def test_commands_print_in_one_way_only():
    for path in Path(cli.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and path.name != "terminal.py":
                called = ast.unparse(node.func)
                assert not called.endswith(("print", "typer.echo", "click.echo", "stdout.write",
                                            "stderr.write", "secho", "print_exception")), (
                    path, called)  # fmt: skip
