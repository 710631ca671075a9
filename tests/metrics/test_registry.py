"""The registry: metrics of other packages, and what is refused."""

import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from raising import raises, warns
from scipy.sparse import csr_matrix

import sparse_eval as se
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
    names = ["k", "n_relevant", "first_hit", "lengths", "reciprocal_rank", "hits_of_list"]
    names += ["gain_step_sum", "rank_sum", "pairs", "step_sum", "order_of_list", "list_length"]
    read = []

    @se.register_metric("reader", "the rank of the first hit", uses=("hits", "total_gain"))
    def reader(s):
        indptr, ranks, gains = s.hits_of_list
        hits = np.split(np.stack((ranks, gains))[:, : indptr[-1]], indptr, 1)
        read.append({name: getattr(s, name) for name in names} | {"hits_of_list": hits})
        return s.first_hit.astype(np.float64)

    rng = np.random.default_rng(0)
    lists = se.Rankings.from_topk(rng.permuted(np.tile(np.arange(30), (50, 1)), axis=1))
    gains = csr_matrix(rng.choice([0.0, 0, 0, 1, 2], (50, 30)))
    for metric in ("reader@1", "reader@5", "reader"):
        read.clear()
        for others in ([], ["ndcg@3", "map@9", "mrr", "auc@20"]):
            se.evaluate(lists, gains, [metric, *others])
        np.testing.assert_equal(read[0], read[1])
        assert max(read[0]["first_hit"]) <= read[0]["k"]


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
        ("hr", {}),
        ("gm_map", {}),
        ("Two Words", {}),
        ("custom", {"per_user": False}),
        ("custom", {"cutoff": "maybe"}),
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


def test_keeps_inputs_from_being_changed_by_formulas():
    def spoil_train(lists):
        lists.train.items[:] = 0

    se.register_metric("spoiling_train", "", over="lists", needs=["train"])(spoil_train)
    for name in ("lengths", "hits", "n_relevant"):
        se.register_metric(f"spoiling_{name}", "")(lambda s, name=name: getattr(s, name).fill(0))
    for name in ("lengths", "hits", "n_relevant", "train"):
        with pytest.raises(ValueError, match="read-only"):
            se.evaluate(LISTS, GAINS, f"spoiling_{name}", train=csr_matrix(np.eye(2, 5)))


@pytest.mark.parametrize("name", ["rank_sum", "candidates", "all_gain", "dcg_exp", "judged_items"])
def test_refuses_formulas_that_read_undeclared_attributes(name):
    se.register_metric("forgetful", "reads more than it says")(lambda s: getattr(s, name) * 1.0)
    with raises(InvalidMetricError):
        se.evaluate(LISTS, GAINS, "forgetful@3")


def test_loads_metrics_of_entry_points(tmp_path, monkeypatch, command):
    modules = {
        "good": "se.register_metric('theirs', 'a metric of another package')(lambda s: s.hits * 3)",
        "broken": "se.register_metric('halfway', 'before it fails')(lambda s: s.hits)\n1 / 0",
        "exit": "raise SystemExit(3)",
    }
    for name, text in modules.items():
        (tmp_path / f"their_{name}.py").write_text(f"import sparse_eval as se\n{text}\n")
    monkeypatch.syspath_prepend(tmp_path)
    points = [
        EntryPoint(name, f"their_{name}", registry.ENTRY_POINTS)
        for name in ("broken", "missing", "exit", "good")
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    with warns() as caught:
        ev = se.evaluate(LISTS, GAINS, "theirs@3")
    assert ev.values("theirs@3").tolist() == [6.0, 3.0]
    assert len(caught) == 3
    assert "halfway" not in REGISTRY
    assert "a metric of another package" in command("metrics", "theirs")[1]


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

#: What a formula may read of the lists down to rank 2, and its sum; and what of blocks, too.
READ = {
    "items": 15, "indptr": 20, "lengths": 8, "rows": 12, "ranks": 12, "gains": 5, "picks": 8,
    "users": 6,
}  # fmt: skip
COUNTED = {"k": 2, "n_users": 4, "n_listed": 4, "n_items": 5, "item_counts": 8}


def register(formula):
    se.register_metric("all_users", "one number", over="lists", per_user=False)(formula)


def in_blocks(**options):
    """Evaluate the same users by every way that cuts them into blocks."""
    names = ["all_users@2", "ndcg@2"]
    with ThreadPoolExecutor(2) as pool:
        return [
            se.evaluate(FOUR_LISTS, FOUR_GAINS, names, memory=10**9, **options),
            se.evaluate(FOUR_LISTS, FOUR_GAINS, names, client=pool, **options),
        ]


@pytest.mark.parametrize(("what", "value"), (READ | COUNTED).items())
def test_may_read_anything_in_memory_and_counts_in_blocks(what, value):
    register(lambda lists: float(np.sum(getattr(lists, what))))
    name = "all_users@2"
    whole = se.evaluate(FOUR_LISTS, FOUR_GAINS, [name, "ndcg@2"])
    assert whole[name] == whole.mean()[name] == whole.summary().loc[name, "mean"] == value
    assert not whole._part.traits_of(name).per_user
    for ev in (*in_blocks(), *in_blocks(keep="totals")):
        assert ev["ndcg@2"] == whole["ndcg@2"]
        if what in COUNTED:
            assert ev[name] == ev.summary().loc[name, "mean"] == value
            row = ev.keys().index(name)
            assert ev._part.replicates(row).tobytes() == whole._part.replicates(row).tobytes()
        else:
            with raises(InvalidMetricError):
                _ = ev[name]


def test_reads_lists_of_the_users_that_count():
    register(lambda lists: float(lists.items.sum()))
    gains = FOUR_GAINS.copy()
    gains.data[2] = 0  # the only one of the second user
    assert se.evaluate(FOUR_LISTS, gains, "all_users@2")["all_users@2"] == 10.0


@pytest.mark.parametrize("wrong", [np.ones(2), "1"])
def test_refuses_values_that_are_not_one_number_in_blocks_too(wrong):
    register(lambda lists: wrong)
    with raises(InvalidMetricError, metric="all_users@2"):
        se.evaluate(FOUR_LISTS, FOUR_GAINS, "all_users@2")
    with raises(InvalidMetricError, metric="all_users@2"):
        _ = in_blocks()[0]["all_users@2"]


def test_a_package_that_fails_to_load_hides_no_metrics_from_other_threads(monkeypatch):
    class Broken:
        name = value = "broken"

        def load(self):
            se.register_metric("half", "registered before the failure")(lambda s: s.hits)
            raise RuntimeError

    def read():
        while not done:
            missing.update(known - REGISTRY.keys())

    monkeypatch.setattr(registry, "entry_points", lambda **_: [Broken()])
    monkeypatch.setattr(registry, "warn", lambda _: None)
    known, missing, done = set(REGISTRY), set(), []
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(read)
            for _ in range(1000):
                registry.load_extensions.cache_clear()
                registry.load_extensions()
            done.append(True)
    finally:
        sys.setswitchinterval(interval)
    assert missing == set()
    assert "half" not in REGISTRY
