"""The command recommend, and yesterday's checkpoint on today's data."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from commands import Command

import sparse_eval as se

YESTERDAY = se.datasets.synthetic(n_users=50, n_items=40, seed=3).to_frame()
#: Users U0 to U9 are not there, and U50 to U59 and items I40 to I44 are new.
TODAY = pd.concat(
    [
        YESTERDAY[~YESTERDAY["user"].isin([f"U{n}" for n in range(10)])].sample(
            200, random_state=1
        ),
        pd.DataFrame(
            {
                "user": [f"U{50 + n}" for n in range(10)],
                "item": [f"I{40 + n % 5}" for n in range(10)],
            }
        ),
    ]
)[["user", "item"]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: Any) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("days")
    held = TODAY.drop_duplicates()
    seen = YESTERDAY[["user", "item"]].drop_duplicates()
    rest = seen.merge(held, indicator=True, how="left")
    rest = rest[rest["_merge"] == "left_only"][["user", "item"]]
    rest.to_csv(folder / "yesterday.csv", index=False)
    held.to_csv(folder / "today.csv", index=False)
    model = se.train_als(se.datasets.load(folder / "yesterday.csv"), factors=4)
    se.save_model(model, folder / "als.npz")
    return {path.name: path for path in folder.iterdir()}


def test_a_checkpoint_of_yesterday_on_the_clicks_of_today(
    command: Command, files: dict[str, Path]
) -> None:
    status, printed, said = command(
        "score", files["als.npz"], "--train", files["yesterday.csv"],
        "--validation", files["today.csv"], "-m", "ndcg@5", "--format", "json",
    )  # fmt: skip
    assert status == 0, said
    assert "evaluated users and 5 of their relevant items are unknown to the model" in said
    recs = se.recommend(files["als.npz"], pd.read_csv(files["yesterday.csv"]), 5)
    expected = se.evaluate(recs.drop(columns="score"), pd.read_csv(files["today.csv"]), "ndcg@5")
    assert json.loads(printed)[0]["metrics"]["ndcg@5"]["mean"] == expected["ndcg@5"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_writes_a_table(
    command: Command, files: dict[str, Path], suffix: str, tmp_path: Path
) -> None:
    out = tmp_path / "new" / f"recs.{suffix}"
    status, printed, said = command(
        "recommend", files["als.npz"], files["yesterday.csv"], "-k", 3, "--out", out
    )
    assert (status, printed) == (0, ""), said
    read = {
        "csv": pd.read_csv, "parquet": pd.read_parquet,
        "jsonl": lambda path: pd.read_json(path, lines=True),
    }  # fmt: skip
    expected = se.recommend(files["als.npz"], pd.read_csv(files["yesterday.csv"]), 3)
    found = read[suffix](out)
    assert found["user"].tolist() == expected["user"].tolist()
    assert found["item"].tolist() == expected["item"].tolist()
    assert found["score"].tolist() == pytest.approx(expected["score"].tolist())


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--users", "nobody"), "the model knows no user 'nobody'"),
        (("-k", 0), "error: --k: expected a whole number"),
        (("--out", "recs.txt"), "--out is 'recs.txt'; expected .csv"),
    ],
)
def test_refuses(
    command: Command, files: dict[str, Path], words: tuple[Any, ...], message: str
) -> None:
    status, printed, said = command("recommend", files["als.npz"], files["yesterday.csv"], *words)
    assert (status, printed) == (2, "")
    assert message in said
