"""The registry: metrics of other packages, and what is refused."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from raising import raises, warns
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.cli import main
from sparse_eval.errors import InvalidMetricError
from sparse_eval.metrics import REGISTRY, Choice, Number, registry

LISTS = se.Rankings.from_topk([[0, 1, 2], [2, 3, 0]], shape=(2, 5))
GAINS = csr_matrix([[1, 0, 1, 0, 0], [0, 0, 0, 2, 0]])


@pytest.fixture(autouse=True)
def _restore():
    registry.load_extensions.cache_clear()
    yield
    registry.load_extensions.cache_clear()


def test_evaluates_a_formula_over_statistics():
    @se.register_metric(
        "discounted_hits",
        "hits, fewer of them if there are many",
        options=(Choice("how", ("root", "plain"), "root of them or not"),
                 Number("weight", "1", 0, 10, "of a hit")),
        linear=False,
    )  # fmt: skip
    def discounted_hits(s, how, weight):
        return weight * (np.sqrt(s.hits) if how == "root" else s.hits)

    name = "discounted_hits(how=plain,weight=2.5)@3"
    ev = se.evaluate(LISTS, GAINS, ["discounted_hits@3", name])
    assert ev.values("discounted_hits@3").tolist() == [np.sqrt(2), 1.0]
    assert ev.values(name).tolist() == [5.0, 2.5]
    assert ev.summary().loc[name, "random_se"] > 0  # not said to be linear
    assert discounted_hits.__name__ == "discounted_hits"


def test_statistics_do_not_depend_on_the_cut_offs_of_other_metrics():
    names = ("k", "n_relevant", "first_hit", "lengths", "reciprocal_rank", "hits_of_list")
    names += ("gain_step_sum", "rank_sum", "pairs", "step_sum", "order_of_list", "list_length")
    read = []

    @se.register_metric("reader", "the rank of the first hit", uses=("hits", "total_gain"))
    def reader(s):
        values = {name: getattr(s, name) for name in names}
        indptr, ranks, gains = values.pop("hits_of_list")
        values["hits_of_list"] = np.split(np.stack((ranks, gains))[:, : indptr[-1]], indptr, 1)
        read.append(values)
        return s.first_hit.astype(np.float64)

    rng = np.random.default_rng(0)
    lists = se.Rankings.from_topk(rng.permuted(np.tile(np.arange(30), (50, 1)), axis=1))
    gains = csr_matrix(rng.choice([0.0, 0, 0, 1, 2], (50, 30)))
    for k in ("@1", "@5", ""):
        read.clear()
        alone, beside = (
            se.evaluate(lists, gains, [f"reader{k}", *others]).values(f"reader{k}")
            for others in ([], ["ndcg@3", "map@9", "mrr", "auc@20"])
        )
        assert alone.tobytes() == beside.tobytes()
        one, other = read[0], read[1]
        for name, value in one.items():
            np.testing.assert_equal(value, other[name], err_msg=name)
        assert k == "" or max(one["first_hit"]) <= int(k[1:])


def test_linear_formulas_have_an_exact_expectation():
    @se.register_metric("half", "half of the recall", linear=True)
    def half(s):
        return s.hits / s.n_relevant / 2

    summary = se.evaluate(LISTS, GAINS, ["half@2", "recall@2"]).summary()
    assert summary["random"].tolist() == pytest.approx([0.2, 0.4])
    assert summary["random_se"].tolist() == [0, 0]


def test_a_registered_name_is_not_read_as_a_cutoff():
    @se.register_metric("precision_5", "none at all")
    def precision_5(s):
        return np.zeros(len(s.hits))

    assert se.evaluate(LISTS, GAINS, "precision_5")["precision_5"] == 0.0
    assert se.evaluate(LISTS, GAINS, "precision_2")["P_2"] == 0.5


@pytest.mark.parametrize(
    ("name", "facts"),
    [
        ("ndcg", {}),
        ("gm_map", {}),
        ("hr", {}),
        ("Two Words", {}),
        ("", {}),
        ("custom", {"per_user": False}),
        ("custom", {"cutoff": "maybe"}),
        ("custom", {"over": "users"}),
    ],
)
def test_refuses_invalid_registrations(name, facts):
    with raises(InvalidMetricError):
        se.register_metric(name, "nothing", **facts)(lambda s: s.hits)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda s: 1.0,
        lambda s: s.hits[:-1],
        lambda s: s.hits + 1j,
        lambda s: (s.hits,),
        lambda s: (s.hits, s.hits[:-1]),
        lambda s: None,
    ],
)
def test_refuses_wrong_values_of_a_formula(wrong):
    se.register_metric("wrong", "no number for each")(wrong)
    with raises(InvalidMetricError, metric="wrong@3"):
        se.evaluate(LISTS, GAINS, "wrong@3", num_threads=1)


def test_refuses_a_micro_average_without_a_pair():
    average = Choice("average", ("macro", "micro"), "how")
    se.register_metric("single", "no pair", options=[average])(lambda s, average: s.hits)
    assert se.evaluate(LISTS, GAINS, "single@3")["single@3"] == 1.5
    with raises(InvalidMetricError, metric="single(average=micro)@3"):
        se.evaluate(LISTS, GAINS, "single(average=micro)@3")
    se.register_metric("double", "a pair", options=[average])(lambda s, average: (s.hits, 0))
    assert se.evaluate(LISTS, GAINS, "double@3").mean() == {"double@3": 0.0}


@pytest.mark.parametrize("name", ["lengths", "hits", "n_relevant"])
def test_keeps_inputs_from_being_changed_by_formulas(name):
    def spoil(s):
        getattr(s, name)[:] = 0
        return s.hits

    def spoil_train(lists):
        lists.train.items[:] = 0
        return lists.lengths * 1.0

    se.register_metric("spoiling", "changes lengths")(spoil)
    se.register_metric("spoiling_train", "changes train", over="lists", needs=["train"])(
        spoil_train
    )
    for metric in ("spoiling", "spoiling_train"):
        with pytest.raises(ValueError, match="read-only"):
            se.evaluate(LISTS, GAINS, metric, train=csr_matrix(np.eye(2, 5)))


@pytest.mark.parametrize("use", ["hits", "candidates", "total_gain", "exp", "judged"])
def test_refuses_formulas_that_read_undeclared_attributes(use):
    read = {
        "hits": lambda s: s.rank_sum,
        "candidates": lambda s: s.candidates * 1.0,
        "total_gain": lambda s: s.all_gain,
        "exp": lambda s: s.dcg_exp,
        "judged": lambda s: s.judged_items * 1.0,
    }
    se.register_metric("forgetful", "reads more than it says")(read[use])
    with raises(InvalidMetricError):
        se.evaluate(LISTS, GAINS, "forgetful@3")


def test_loads_metrics_of_entry_points(tmp_path, monkeypatch, capsys):
    (tmp_path / "their_metrics.py").write_text(
        "import sparse_eval as se\n"
        "@se.register_metric('theirs', 'a metric of another package')\n"
        "def theirs(s):\n"
        "    return s.hits * 3\n"
    )
    (tmp_path / "their_broken.py").write_text(
        "import sparse_eval as se\n"
        "se.register_metric('halfway', 'registered before it fails')(lambda s: s.hits)\n"
        "1 / 0\n"
    )
    (tmp_path / "their_exit.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(tmp_path)
    points = [
        EntryPoint("broken", "their_broken", registry.ENTRY_POINTS),
        EntryPoint("missing", "their_missing", registry.ENTRY_POINTS),
        EntryPoint("exit", "their_exit", registry.ENTRY_POINTS),
        EntryPoint("good", "their_metrics", registry.ENTRY_POINTS),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    with warns() as caught:
        ev = se.evaluate(LISTS, GAINS, "theirs@3")
    assert ev.values("theirs@3").tolist() == [6.0, 3.0]
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == 3
    assert "halfway" not in REGISTRY
    assert "entry point 'broken' (their_broken)" in messages[0]
    assert "ZeroDivisionError" in messages[0]
    assert "entry point 'missing'" in messages[1]

    with pytest.raises(SystemExit):
        main(["metrics", "theirs"])
    assert "a metric of another package" in capsys.readouterr().out


def test_registered_metrics_load_no_entry_points(monkeypatch):
    def refuse(group):
        raise AssertionError(group)

    monkeypatch.setattr(registry, "entry_points", refuse)
    assert se.evaluate(LISTS, GAINS, "mrr@3")["mrr@3"] == 0.75


@pytest.mark.parametrize("name", REGISTRY)
def test_definitions_pickle_by_name(name):
    assert pickle.loads(pickle.dumps(REGISTRY[name])) is REGISTRY[name]  # noqa: S301
    assert len(pickle.dumps(REGISTRY[name])) < 100


@pytest.mark.parametrize("name", REGISTRY)
def test_says_in_a_plain_sentence_what_a_metric_says(name):
    plain = REGISTRY[name].plain
    assert plain[0].isupper()
    assert plain.endswith(".")
    assert ". " not in plain
    assert plain != REGISTRY[name].description


#: Four users, for metrics that are one number of all of them.
FOUR_LISTS = se.Rankings.from_topk([[0, 1, 2], [2, 3, 0], [4, 1, 3], [0, 4, 1]], shape=(4, 5))
FOUR_GAINS = csr_matrix([[1, 0, 1, 0, 0], [0, 0, 0, 2, 0], [0, 0, 0, 0, 1], [1, 1, 0, 0, 0]])
FOUR_TRAIN = csr_matrix([[0, 0, 0, 1, 0], [0, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 1, 1, 0]])


def register(formula, name="all_users", **options):
    se.register_metric(name, "one number", over="lists", per_user=False, **options)(formula)
    return f"{name}@2"


#: What a formula may read of the lists, and its value above.
READ = {
    "items": (lambda lists: float(lists.items.sum()), 15.0),
    "indptr": (lambda lists: float(lists.indptr[-1]), 8.0),
    "lengths": (lambda lists: float(lists.lengths.sum()), 8.0),
    "rows": (lambda lists: float(lists.rows.max()), 3.0),
    "ranks": (lambda lists: float(lists.ranks.sum()), 12.0),
    "gains": (lambda lists: float(lists.gains.sum()), 5.0),
    "relevant": (lambda lists: float(lists.relevant[2].sum()), 7.0),
    "picks": (lambda lists: float(lists.picks.nnz), 8.0),
    "users": (lambda lists: float(lists.users.sum()), 6.0),
    "training": (lambda lists: float(len(lists.train.items)), 5.0),
}

#: What it may read of blocks, too.
COUNTED = {
    "k": (lambda lists: float(lists.k), 2.0),
    "n_users": (lambda lists: float(lists.n_users), 4.0),
    "n_listed": (lambda lists: float(lists.n_listed), 4.0),
    "n_items": (lambda lists: float(lists.n_items), 5.0),
    "item_counts": (lambda lists: float(lists.item_counts @ np.arange(5)), 15.0),
}


def in_blocks(names, **options):
    """Evaluate the same users by every way that cuts them into blocks."""
    with ThreadPoolExecutor(2) as pool:
        return [
            se.evaluate(FOUR_LISTS, FOUR_GAINS, names, train=FOUR_TRAIN, memory=10**9, **options),
            se.evaluate(FOUR_LISTS, FOUR_GAINS, names, train=FOUR_TRAIN, client=pool, **options),
        ]


@pytest.mark.parametrize("what", [*READ, *COUNTED])
def test_may_read_anything_in_memory_and_counts_in_blocks(what):
    formula, value = (READ | COUNTED)[what]
    name = register(formula)
    whole = se.evaluate(FOUR_LISTS, FOUR_GAINS, [name, "ndcg@2"], train=FOUR_TRAIN)
    assert whole[name] == whole.mean()[name] == whole.summary().loc[name, "mean"] == value
    assert not whole.is_per_user(name)
    for ev in (*in_blocks([name, "ndcg@2"]), *in_blocks([name, "ndcg@2"], keep="totals")):
        assert ev["ndcg@2"] == whole["ndcg@2"]
        if what in COUNTED:
            assert ev[name] == ev.summary().loc[name, "mean"] == value
            assert ev.replicates(name).tobytes() == whole.replicates(name).tobytes()
        else:
            with raises(InvalidMetricError):
                _ = ev[name]


def test_reads_lists_of_the_users_that_count():
    name = register(lambda lists: float(lists.items.sum()))
    gains = FOUR_GAINS.copy()
    gains.data[2] = 0  # the only one of the second user
    assert se.evaluate(FOUR_LISTS, gains, name)[name] == 10.0


@pytest.mark.parametrize("wrong", [np.ones(2), None, "1", (1.0, 2.0), 1j])
def test_refuses_values_that_are_not_one_number_in_blocks_too(wrong):
    name = register(lambda lists: wrong)
    with raises(InvalidMetricError, metric="all_users@2"):
        se.evaluate(FOUR_LISTS, FOUR_GAINS, name)
    with raises(InvalidMetricError, metric="all_users@2"):
        _ = in_blocks([name, "ndcg@2"])[0][name]
