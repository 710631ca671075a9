"""Histories: a line a night, and what has changed between nights."""

import math
import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
import reporting
from raising import raises
from scipy import stats
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError, OutputError

pytestmark = pytest.mark.long

EVS = reporting.three()


def evaluate(seed, users=None, **options):
    rng = np.random.default_rng(seed)
    held_out = rng.random((50, 20)) < 0.3
    held_out[:, 0] = True  # so that all users count
    relevance = se.Relevance.from_csr(csr_matrix(held_out), users=users)
    lists = se.Rankings.from_topk(np.argsort(rng.random((50, 20)), axis=1)[:, :5], users=users)
    return se.evaluate(lists, relevance, ["ndcg@5", "recall@5"], **options)


def write(path, names="good fair poor"):
    history = se.History(path)
    for day, name in enumerate(names.split(), start=1):
        history.append(EVS[name], name, time=datetime(2026, 11, day, 3, tzinfo=UTC))
    return history


def test_a_line_is_what_was_evaluated(tmp_path):
    path = tmp_path / "nightly" / "h.jsonl"
    table = write(path).to_frame()
    history = se.History(path)
    assert repr(history).endswith("h.jsonl: 3 nights>")
    pd.testing.assert_frame_equal(history.to_frame(), table)
    assert table["time"].dt.day.tolist() == sorted([1, 2, 3] * len(EVS["good"].keys()))
    of_good = table[table["name"] == "good"].set_index("metric")
    summary = EVS["good"].summary()
    for name in ("mean", "ci_low", "ci_high", "interval", "n_users"):
        assert of_good[name].equals(summary[name])
    per_user = summary["std"].notna()
    expected = summary["std"] / np.sqrt(summary["n_users"])
    assert of_good["standard_error"][per_user].equals(expected[per_user])
    assert of_good.loc["coverage@10", "standard_error"] == pytest.approx(
        EVS["good"]._part.replicates(EVS["good"]._part.row_of("coverage@10")).std(ddof=1), rel=1e-12
    )


@pytest.mark.parametrize("users", [None, [f"u{n}" for n in range(50)]])
def test_a_saved_evaluation_is_the_same_night(tmp_path, users):
    history, ev = se.History(tmp_path / "h.jsonl"), evaluate(0, users)
    for day, one in enumerate((ev, se.Evaluation.load(ev.save(tmp_path / "ev"))), start=10):
        history.append(
            one, "als", time="2026-11-23T04:00+01:00", about={"seed": 1}, night=f"2026-11-{day}"
        )
    first, second = (night._replace(night="") for night in history.nights)
    assert first == second
    assert first.time == datetime(2026, 11, 23, 3, tzinfo=UTC)
    assert first.about == {"seed": 1}
    assert first.same_users(second)


def test_nights_are_compared_unpaired(tmp_path):
    history = write(tmp_path / "h.jsonl", "fair good poor")
    table = history.changes(correction="bh")
    names = EVS["good"].keys()
    assert table["metric"].tolist() == 2 * names
    pairs = [("fair", "good")] * len(names) + [("good", "poor")] * len(names)
    for (a, b), row in zip(pairs, table.to_dict("records"), strict=True):
        metric = row["metric"]
        if not EVS[a]._part.traits_of(metric).per_user:
            continue
        x, y = (EVS[name].values(metric) for name in (b, a))
        x, y = x[~np.isnan(x)], y[~np.isnan(y)]
        welch = stats.ttest_ind(x, y, equal_var=False)
        interval = welch.confidence_interval(0.95)
        assert row["p"] == pytest.approx(welch.pvalue, rel=1e-9)
        assert (row["ci_low"], row["ci_high"]) == pytest.approx(interval, rel=1e-9)
        assert row["difference"] == pytest.approx(x.mean() - y.mean())
    expected = stats.false_discovery_control(table["p"])
    np.testing.assert_allclose(table["p_corrected"], expected)
    change = table.set_index(["metric", "name"])["change"]
    assert change["ndcg@10", "good"] == "better"
    assert change["ndcg@10", "poor"] == "worse"
    assert set(table["same_users"]) == {True}
    assert "compared as independent samples" in history.notes()[0]


def test_less_is_better(tmp_path):
    truth = csr_matrix(np.tile([1.0, 0, 0, 0], (300, 1)))
    rng = np.random.default_rng(0)
    history = se.History(tmp_path / "ranks.jsonl")
    for worst in (2, 4):
        ranks = csr_matrix((rng.integers(1.0, worst + 1, 300), (range(300), [0] * 300)), (300, 4))
        ev = se.evaluate(se.Rankings.from_positions(ranks), truth, "mean_rank")
        history.append(ev, "x", night=f"2026-11-0{worst}")
    assert history.changes()["change"].tolist() == ["worse"]


def test_other_users_and_other_settings_are_said(tmp_path):
    history = se.History(tmp_path / "h.jsonl")
    ids = [[f"{day}-{n}" for n in range(50)] for day in "ab"]
    for seed, users in enumerate((ids[0], ids[0], ids[1], None)):
        history.append(evaluate(seed, users), "als", time=f"2026-11-0{seed + 1}T00:00Z")
    assert history.changes()["same_users"].iloc[::2].tolist() == [True, False, pd.NA]
    said = "\n".join(history.notes())
    assert "nights with different users from the night before: 1 of 3" in said
    assert "nights with possibly different users from the night before: 1 of 3," in said
    history.append(evaluate(9, convention="ranx"), "als", time="2026-11-09T00:00Z")
    assert history.changes()["p"].isna().tolist() == [False] * 6 + [True] * 2
    assert (
        "2026-11-09 00:00 is not compared with the night before, because convention is ranx, and "
        "was standard" in history.notes()
    )
    without = se.History(tmp_path / "blocks.jsonl")
    without.append(evaluate(0, keep="totals"), "als")
    assert (without.nights[0].users, without.nights[0].relevance) == (None, None)


def test_a_night_is_not_compared_with_itself(tmp_path):
    history = write(tmp_path / "h.jsonl", "fair good")
    for name, minute in (("poor", 1), ("good", 2)):  # the night again, with another best model
        history.append(EVS[name], "rerun", time=f"2026-11-02T04:0{minute}Z")
    history.append(EVS["poor"], "late", time="2026-11-03T01:00Z", night="2026-11-02")
    history.append(EVS["fair"], "fair", time="2026-11-03T03:00Z")
    for found in (history, se.History(history.path)):
        assert [night.name for night in found.nights] == ["fair", "good", "rerun", "late", "fair"]
        assert found.nights[2].metrics == history.nights[1].metrics
        table = found.changes("ndcg@10")
        assert table["name_before"].tolist() == ["fair"] * 3 + ["late"]
    assert len(history.path.read_text().splitlines()) == 6
    history.append(EVS["poor"], "later", time="2026-11-04T03:00Z", night="2026-10-31")
    assert [night.name for night in history.nights][:2] == ["later", "fair"]


def test_a_night_without_numbers(tmp_path):
    history = se.History(tmp_path / "h.jsonl")
    assert len(history.changes()) == len(history.to_frame()) == 0
    lists, truth = se.Rankings.from_topk([[0]], shape=(1, 2)), csr_matrix([[0, 1]])
    for night in ("2026-11-01", "2026-11-02T06"):
        history.append(se.evaluate(lists, truth, "fcp,mrr@1"), "als", night=night)
    found = se.History(history.path)
    assert math.isnan(found.nights[0].metrics["fcp"].mean)
    assert found.changes()["p"].isna().all()


def test_refuses_what_is_no_night(tmp_path):
    history = write(tmp_path / "h.jsonl")
    before = history.path.read_bytes()
    for options in (
        {"time": "yesterday"},
        {"time": "2026-11-23T03:00"},
        {"time": "0001-01-01T00:00+14:00"},
        {"time": datetime.max.replace(tzinfo=UTC)},
        {"night": "yesterday"},
        {"about": {"x": {1, 2}}},
    ):
        with raises(InvalidDataError):
            history.append(EVS["good"], "als", **options)
    for options in ({"correction": "sidak"}, {"metrics": ["ndcg@10", "mrr@3"]}):
        with raises(InvalidDataError):
            history.changes(**options)
    assert history.path.read_bytes() == before
    elsewhere = timezone(timedelta(hours=-5))
    history.append(EVS["good"], "als", time=datetime(2026, 11, 1, tzinfo=elsewhere))
    assert [night.name for night in history.nights] == ["good", "als", "fair", "poor"]


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    history = write(tmp_path / "h.jsonl")
    before, put = history.path.read_bytes(), os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda file, data: put(file, data[:50]))
        with raises(OutputError):
            history.append(EVS["good"], "als")
    assert (history.path.read_bytes(), len(history)) == (before, 3)
    with raises(OutputError):
        se.History(history.path / "h.jsonl").begin()
    history.path.write_bytes(b'{"schema": 1, "sparse_eval": "0.1.0", "name": "als"}\n')
    with raises(InvalidFileError, line=1):
        se.History(history.path)


def test_many_writers_leave_whole_lines(tmp_path):
    def append(number):
        big = {"text": "x" * 100_000}
        se.History(tmp_path / "h.jsonl").append(EVS["good"], str(number), about=big)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(append, range(16)))
    found = se.History(tmp_path / "h.jsonl")
    assert {night.name for night in found.nights} == {*map(str, range(16))}
