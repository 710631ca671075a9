"""Saved and pickled evaluations: what comes back, and what is refused."""

import json
import math
import pickle
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from evaluations import (
    KINDS,
    in_memory,
    of_model,
    part_of,
    random_of,
    same_everything,
    saved,
    some,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from merge_cases import every_metric
from pyarrow import parquet
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.core.exact_sums import Moments
from sparse_eval.errors import InvalidDataError, InvalidFileError
from sparse_eval.metrics import REGISTRY
from sparse_eval.metrics.random_baseline import Expectation
from sparse_eval.results.counts import Retrieval
from sparse_eval.results.saving import _TYPES, _digest, remove_saved

NAMES = ["ndcg@5", "mean_rank", "coverage@5", "recall(average=micro)@5"]
ODD = [
    "", "NA", "nan", 'quo"te', "new\nline", "carriage\rreturn", "a,b", "<script>alert(1)</script>",
    "שלום", "x" * 9999,
]  # fmt: skip
LABELS = {
    "row numbers": None,
    "numbers": list(range(100, 130)),
    "negative numbers": list(range(-30, 0)),
    "digits": [f"{number:03}" for number in range(30)],
    "text": [*ODD, *(f"u{number}" for number in range(20))],
}


FILES = {"summary.json", "metrics.parquet", "lists.parquet"}


def make(labels=None, seed=0):
    rng = np.random.default_rng(seed)
    held_out = np.random.default_rng(1).random((30, 40)) < 0.1
    held_out[0] = False  # one is left out
    lists = se.Rankings.from_topk(rng.permuted(np.tile(np.arange(40), (30, 1)), axis=1))
    relevance = se.Relevance.from_csr(csr_matrix(held_out.astype(float)), users=labels)
    return se.evaluate(lists, relevance, NAMES)


def again(ev):
    return pickle.loads(pickle.dumps(ev))  # noqa: S301 - our own


def content_of(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_comes_back_with_the_same_bits(kind, tmp_path):
    ev = KINDS[kind]()
    for one in (ev, *ev.baselines.values()):
        one.summary()  # the random baseline takes the source, which is not pickled
    pickled = again(ev)
    same_everything(ev, pickled)
    found = saved(again(pickled), tmp_path / "a")
    same_everything(ev, found)
    same_everything(ev, saved(found, tmp_path / "b"))
    assert found.to_dict() == ev.to_dict()
    assert found.merge().mean() == ev.mean()
    if found._part.values is not None:
        assert (se.compare({"a": found, "b": ev}).table["difference"].dropna() == 0).all()
    kept = {"per_user.parquet"} if found._part.values is not None else set()
    if any(one._part.values is not None for one in ev.baselines.values()):
        kept |= {"baselines.parquet"}
    assert content_of(tmp_path / "a").keys() == kept | FILES
    assert content_of(tmp_path / "a") == content_of(tmp_path / "b")


@pytest.mark.filterwarnings("ignore:too few users")
def test_baselines_with_and_without_weights_come_back(tmp_path):
    users = list("abcdef")
    weights = dict(zip(users, np.arange(1.0, 7), strict=True))
    held_out = se.Relevance.from_csr(csr_matrix(np.eye(6)), users=users)
    train = se.Relevance.from_csr(csr_matrix((6, 6)), users=users)
    lists = [
        se.Rankings.from_topk([row] * 6, shape=(6, 6), users=users)
        for row in ([1, 0], [1, 2], [0, 2])
    ]
    ev = se.evaluate(lists[0], held_out, "mrr@2", weights=weights)
    ev.baselines["even"] = even = se.evaluate(lists[1], held_out, "mrr@2", train=train)
    ev.baselines["weighted"] = se.evaluate(lists[2], held_out, "mrr@2", weights=weights)
    found = saved(ev, tmp_path).baselines
    for name, one in ev.baselines.items():
        same_everything(one, found[name])
    other = se.evaluate(lists[2], held_out, "mrr@2", train=train)
    tables = [se.compare({"a": one, "b": other}).table for one in (found["even"], even)]
    pd.testing.assert_frame_equal(*tables)


def test_rare_values_come_back(tmp_path):
    ev = some(metrics=every_metric())
    part, (_, *random) = part_of(ev, per_user=False), ev._random
    key, counts = next(iter(part.lists.items()))
    for changed in (
        *({"random": (one, *random)} for one in (None, Expectation(-0.0, 0.0))),
        {"retrieval": Retrieval("top_k", 3, 2, 1, 0)},
        {"retrieval": Retrieval("recommend", 2**40)},
        {"lists": {**part.lists, key: counts._replace(sums=counts.sums * 2**50)}},
        *(
            {"moments": (Moments(3, -(7**700), 11**1200, rest), *part.moments[1:])}
            for rest in (math.inf, -math.inf, math.nan, 0.0, -0.0)
        ),
    ):
        expected = replace(part, **changed)
        found = saved(se.Evaluation(expected), tmp_path)._part
        assert found.equals(expected)
        assert repr(found.moments) == repr(expected.moments)


@pytest.mark.long
@settings(max_examples=20)
@given(
    st.lists(st.floats(), min_size=1, max_size=8),
    st.data(),
    st.sampled_from([st.text(st.characters(exclude_categories=["Cs"])), st.integers(-(2**63), 99)]),
)
def test_any_values_and_labels_come_back(values, data, labels):
    n_users = len(values)
    users = data.draw(st.lists(labels, min_size=n_users, max_size=n_users, unique=True))
    ev = some(n_users, labels=users)
    columns = np.array([values] * len(part_of(ev).values.columns))
    part = replace(part_of(ev), values=replace(part_of(ev).values, columns=columns))
    with tempfile.TemporaryDirectory() as folder:
        found = saved(se.Evaluation(part), folder)
    assert list(found._values.users) == part.values.user_ids.tolist()
    assert np.array_equal(np.isnan(found._values.columns), np.isnan(columns))
    known = ~np.isnan(columns)
    assert found._values.columns[known].tobytes() == columns[known].tobytes()


def test_what_needs_lists_works_after_pickling():
    ev = in_memory()
    found = again(ev)
    pd.testing.assert_frame_equal(found.explain(3), ev.explain(3))
    pd.testing.assert_frame_equal(found.by("activity"), ev.by("activity"))
    assert found._record == ev._record


def test_a_pickled_evaluation_has_the_random_baseline_that_was_computed():
    """The source, which would be read a second time, is left behind."""
    ev = some(keep="totals", memory=1 << 24)
    assert again(ev).summary()["random"].isna().all()
    expected = random_of(ev, "ndcg@3")
    assert expected is not None
    assert random_of(again(ev), "ndcg@3") == expected
    assert random_of(again(ev), "coverage@2") is None


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_labels_and_what_was_remembered_come_back(labels, tmp_path):
    ev = make(labels)
    about = {"factors": 64, "note": "<b>"}
    folder = ev.save(tmp_path / "results" / "als", about=about)
    found = se.Evaluation.load(folder / "summary.json")
    same_everything(ev, found)
    remembered = json.loads(json.dumps(ev._record)) | {"about": about}
    assert found._record == again(found)._record == remembered
    assert se.Evaluation.load(found.save(tmp_path / "again")).about == about
    other = se.Evaluation.load(found.save(tmp_path / "other", about={"seed": 2}))
    assert other.about == {"seed": 2}


def test_baselines_have_names_that_fit_into_tables_and_terminals(tmp_path):
    ev, other = some(), some(seed=1)
    ev.baselines = dict.fromkeys(["als/old", "Als", "שלום", "x" * 999], other)
    ev.baselines |= {"1": other}
    same_everything(ev, saved(ev, tmp_path / "a"))
    known = list(ev.baselines)
    for name in ("", " ", "a\nb", "a\u202eb", "\ud800", 3, "mean", "candidates"):
        for give in (
            lambda name=name: ev.baselines.__setitem__(name, other),
            lambda name=name: ev.baselines.update({name: other}),
            lambda name=name: setattr(ev, "baselines", {"new": other, name: other}),
        ):
            with raises(InvalidDataError):
                give()
    assert list(again(ev).baselines) == list(ev.baselines) == known


def test_what_cannot_be_saved_leaves_what_was(tmp_path):
    ev = make()
    ev.save(tmp_path)
    before = content_of(tmp_path)
    for about in ({"loss": math.nan}, 3):
        with raises(InvalidDataError):
            ev.save(tmp_path, about=about)
    with raises(TypeError):
        ev.save(tmp_path, table="csv")
    assert content_of(tmp_path) == before


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_other_tools_read_the_values_of_the_users(labels, tmp_path):
    ev = make(labels)
    file = ev.save(tmp_path) / "per_user.parquet"
    users, names = ev.per_user.index.tolist(), [*ev.per_user]
    for frame in (pd.read_parquet(file), pl.read_parquet(file).to_pandas()):
        assert frame["user"].tolist() == users
        values = frame[names].to_numpy(np.float64)
        np.testing.assert_array_equal(values, ev.per_user.to_numpy())
        assert frame["evaluated"].tolist() == ev._values.counted.tolist()
        assert frame["relevant"].tolist() == ev._values.n_relevant.tolist()
    assert pl.read_parquet(file)["ndcg@5"].mean() == pytest.approx(ev["ndcg@5"])  # null, not NaN


def test_other_tools_read_the_numbers(tmp_path):
    ev = of_model()
    frame = pd.read_parquet(ev.save(tmp_path) / "metrics.parquet").set_index(
        ["evaluation", "metric"]
    )
    for name, one in {"": ev, **ev.baselines}.items():
        assert frame.loc[name, "value"].to_dict() == one.mean()
        assert frame.loc[name, "n_users"].tolist() == [
            one._part.count(row) for row in range(len(one.keys()))
        ]
        assert frame.loc[name, "random"].tolist() == one.summary()["random"].tolist()


def test_a_metric_may_be_called_like_a_column(tmp_path, monkeypatch):
    monkeypatch.setattr("sparse_eval.metrics.registry.REGISTRY", REGISTRY.copy())
    for name in ("seen", "relevant"):
        se.register_metric(name, "odd", cutoff="none")(lambda s: np.asarray(s.n_relevant) / 7)
    same_everything(ev := some(metrics=["seen", "mrr@2", "relevant"]), saved(ev, tmp_path))


@pytest.mark.filterwarnings("ignore:invalid value encountered")  # by the jackknife
def test_a_number_about_all_users_may_be_infinite(tmp_path):
    @se.register_metric("own_infinite", "infinite", over="lists", per_user=False)
    def own_infinite(lists):
        return math.inf if lists.n_users else math.nan

    try:
        folder = some(metrics=["own_infinite@2"]).save(tmp_path)
    finally:
        del REGISTRY["own_infinite"]
    assert se.Evaluation.load(folder)["own_infinite@2"] == math.inf


def test_refuses_what_is_not_what_was_saved(tmp_path):
    path = make().save(tmp_path) / "summary.json"
    whole = json.loads(path.read_text())
    row = {"ndcg@5": whole["metrics"]["ndcg@5"] | {"mean": 0.5}}
    for content in (
        [1],
        *(signed(whole | {"schema": schema}) for schema in (None, 99, 2)),
        # Whatever is changed, deep inside too, and whatever is missing.
        {key: value for key, value in whole.items() if key != "digest"},
        {key: value for key, value in whole.items() if key != "about"},
        whole | {"metrics": whole["metrics"] | row},
        whole | {"digest": None},
    ):
        path.write_text(json.dumps(content))
        with raises(InvalidFileError):
            se.Evaluation.load(path)
    path.write_text(json.dumps(whole, indent=4))  # another layout is no change
    assert se.Evaluation.load(path).keys() == NAMES
    path.write_bytes(b"\xff\xfe")
    for place in (path, tmp_path / "none.json"):
        with raises(InvalidFileError):
            se.Evaluation.load(place)


def signed(content):
    return content | {"digest": _digest(content)}


@pytest.mark.parametrize("key", _TYPES)
def test_names_the_key_that_is_missing_or_has_another_type(key, tmp_path):
    path = make().save(tmp_path) / "summary.json"
    whole = json.loads(path.read_text())
    rest = {name: value for name, value in whole.items() if name != key}
    for content in (rest, rest | {key: 1.5}):
        path.write_text(json.dumps(content))
        with raises(InvalidFileError, path=path) as raised:
            se.Evaluation.load(path)
        assert repr(key) in str(raised.value)


def test_refuses_each_file_that_was_changed_exchanged_or_lost(tmp_path):
    folder = of_model().save(tmp_path / "a")
    other = make().save(tmp_path / "b")
    for name in ("per_user.parquet", "metrics.parquet", "lists.parquet"):
        file = folder / name
        data = file.read_bytes()
        for changed in (data + b"\n", b"", (other / name).read_bytes()):
            file.write_bytes(changed)
            with raises(InvalidFileError, path=file):
                se.Evaluation.load(folder)
        file.unlink()
        with raises(InvalidFileError, path=file):
            se.Evaluation.load(folder)
        file.write_bytes(data)
    assert list(se.Evaluation.load(folder).baselines) == ["popularity"]


def interrupted(*_, **__):
    raise KeyboardInterrupt


def test_a_save_that_is_interrupted_leaves_the_one_before(tmp_path, monkeypatch):
    make().save(tmp_path)
    before = content_of(tmp_path)
    monkeypatch.setattr(parquet, "write_table", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make(seed=2).save(tmp_path)
    assert content_of(tmp_path) == before


def test_a_save_that_is_killed_leaves_no_mixture(tmp_path, monkeypatch):
    """The process dies between two moves, which neither handlers nor finally see."""
    make().save(tmp_path)
    move, moves = Path.replace, []

    def killed(path, target):
        moves.append(path)
        return move(path, target) if len(moves) == 1 else None

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", killed)
        make(seed=2).save(tmp_path)
    assert len(moves) == 4
    with raises(InvalidFileError):
        se.Evaluation.load(tmp_path)


def test_files_are_removed_with_the_json_first(tmp_path, monkeypatch):
    make().save(tmp_path)
    (tmp_path / "per_user.csv").write_text("kept")
    some(metrics=["mrr@2"], keep="totals").save(tmp_path)
    assert content_of(tmp_path).keys() == {"summary.json", "metrics.parquet", "per_user.csv"}
    make().save(tmp_path)
    unlink = Path.unlink

    def interrupted_after(path, **given):
        unlink(path, **given)
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "unlink", interrupted_after)
    with pytest.raises(KeyboardInterrupt):
        remove_saved(tmp_path)
    assert content_of(tmp_path).keys() == FILES - {"summary.json"} | {
        "per_user.parquet",
        "per_user.csv",
    }


def test_saved_folders_are_compared_by_path(tmp_path):
    evs = {"a": some(), "b": some(metrics=["ndcg@3", "mrr"])}
    paths = {name: ev.save(tmp_path / name) for name, ev in evs.items()}
    expected = se.compare(evs).table
    for places in (paths, list(paths.values()), tuple(map(str, paths.values()))):
        pd.testing.assert_frame_equal(se.compare(places).table, expected, check_exact=True)
    pd.testing.assert_frame_equal(se.compare(evs | {"b": paths["b"]}).table, expected)
    with raises(InvalidDataError):
        se.compare([paths["a"], tmp_path / "other" / "a"])
    with raises(InvalidFileError):
        se.compare([paths["a"], tmp_path / "none"])
