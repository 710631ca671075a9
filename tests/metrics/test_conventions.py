"""What each convention changes, on users whose numbers can be worked out by hand."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError
from sparse_eval.metrics import CONVENTIONS, STANDARD, parse
from sparse_eval.metrics.registry import definition

# user 0: hits at ranks 1 and 3 of three, of four relevant, one of them worth 2;
# user 1: a list of one item, a miss; user 2: no list; user 3: nothing relevant, a zero stored;
# user 4: nothing stored at all
LISTS = se.Rankings.from_topk(
    [[0, 1, 2], [5, -1, -1], [-1] * 3, [0, 1, 2], [2, 1, 0]], shape=(5, 8)
)
GAINS = csr_matrix(
    (
        [1.0, 2.0, 1.0, 1.0, 1.0, 3.0, 0.0],
        ([0, 0, 0, 0, 1, 2, 3], [0, 2, 6, 7, 4, 1, 1]),
    ),
    shape=(5, 8),
)


WITHOUT_ZEROS = GAINS.copy()
WITHOUT_ZEROS.eliminate_zeros()
REFUSING = [name for name, rules in CONVENTIONS.items() if rules.zeros == "error"]


def d(rank):
    return 1 / math.log2(rank + 1)


BINARY = d(1) + d(3)  # the dcg of user 0
#: Its ndcg by gains and by hits alone, and the sum of its precisions at hits
GRADED, PLAIN, SUM = (1 + 2 * d(3)) / (2 + d(2) + d(3)), BINARY / (1 + d(2) + d(3)), 1 + 2 / 3
EXPECTED = {
    # of user 0 at 3: ndcg, map, precision, recall, None where it has none; and the users that
    # count for recall
    None: (GRADED, SUM / 4, 2 / 3, 2 / 4, 3),
    "trec_eval": (GRADED, SUM / 4, 2 / 3, 2 / 4, 3),
    "rankereval": (GRADED, SUM / 3, 2 / 3, 2 / 4, 3),
    "implicit": (PLAIN, SUM / 3, None, 2 / 4, 3),
    "ranx": (GRADED, SUM / 4, 2 / 3, 2 / 4, 4),
    "rectools": (PLAIN, SUM / 4, 2 / 3, 2 / 4, 3),
    "recbole": (PLAIN, SUM / 3, 2 / 3, 2 / 4, 3),
    "lightfm": (GRADED, SUM / 4, 2 / 3, 2 / 4, 3),
    "cornac": (PLAIN, SUM / 4, 2 / 3, 2 / 4, 3),
    "recometrics": (GRADED, SUM / 4, 2 / 3, 2 / 4, 3),
    "napkinxc": (PLAIN, SUM / 4, 2 / 3, 2 / 4, 5),
    "pyxclib": (PLAIN, SUM / 4, 2 / 3, 2 / 4, 5),
    "evidently": (GRADED, SUM / 4, 2 / 3, 2 / 4, 3),
    "elliot": ((1 + 3 * d(3)) / (3 + d(2) + d(3)), None, 2 / 3, 2 / 4, 2),
    "tensorflow-recommenders": (GRADED, SUM / 4, 2 / 3, None, 3),
    "lightgcn": (PLAIN, SUM / 4, 2 / 3, 2 / 4, 3),
    "lenskit": ((1 + d(2)) / (2 + d(2)), SUM / 3, 2 / 3, 2 / 3, 5),
    "recommenders": (PLAIN, SUM / 4, 2 / 3, 2 / 4, 2),
    "recpack": (PLAIN, SUM / 4, 2 / 3, 2 / 4, 3),
    "replay": (PLAIN, SUM / 3, 2 / 3, 2 / 4, 3),
    "irspack": (PLAIN, SUM / 4, 2 / 3, 2 / 4, 2),
    "spark": (PLAIN, SUM / 3, 2 / 3, 2 / 4, 5),
    "sklearn": (GRADED, SUM / 4, 2 / 3, 2 / 4, 5),
    "torchmetrics": (GRADED, SUM / 2, 2 / 3, 2 / 4, 5),
    "recsys2019": ((1 + 3 * d(3)) / (3 + d(2) + d(3) + d(4)), SUM / 3, 2 / 3, 2 / 4, 3),
    "mind-notebook": (PLAIN, SUM / 4, 2 / 3, 2 / 4, 2),
}


def test_every_convention_has_expected_values():
    assert set(EXPECTED) - {None} == set(CONVENTIONS) - {"standard"}


@pytest.mark.parametrize("convention", EXPECTED)
def test_each_convention_on_the_first_user(convention):
    *values, n_users = EXPECTED[convention]
    rules = CONVENTIONS[convention or "standard"]
    names = ["ndcg", "map", "precision", "recall"]
    metrics = [name if name in rules.uncut else f"{name}@3" for name in names]
    expected = {m: v for m, v in zip(metrics, values, strict=True) if v is not None}
    gains = WITHOUT_ZEROS if rules.zeros == "error" else GAINS
    ev = se.evaluate(LISTS, gains, list(expected), convention=convention)
    assert {m: ev.values(m)[0] for m in expected} == pytest.approx(expected)
    assert ev.convention == (convention or "standard")
    if "recall@3" in expected:
        assert ev.summary().loc["recall@3", "n_users"] == n_users
        assert ev["recall@3"] == pytest.approx(expected["recall@3"] / n_users)
    else:
        assert ev.n_users == n_users


AUC_OF_ALL = ((1 + (2 + 4) / 2 * (8 - 4 - 1)) / (4 * 4), 3 / 7, 1 / 2)


@pytest.mark.parametrize(
    ("convention", "metric", "expected"),
    [
        ("tensorflow-recommenders", "recall@3", 2 / (4 + 1 + 1)),
        ("implicit", "precision@3", 2 / (3 + 1 + 1)),
        ("implicit", "auc@3", sum(AUC_OF_ALL) / 3),
        ("recommenders", "ndcg@3", BINARY / (1 + d(2) + d(3)) / 3),
        ("recommenders", "recall@3", 2 / 4 / 2),
        ("irspack", "entropy@3", math.log(4)),
        ("rectools", "entropy@3", -(0.9 * math.log2(0.3) + 0.1 * math.log2(0.1))),
    ],
)
def test_what_some_libraries_do(convention, metric, expected):
    train = csr_matrix(([1.0], ([0], [3])), shape=(5, 8))
    ev = se.evaluate(LISTS, WITHOUT_ZEROS, metric, train=train, convention=convention)
    assert ev[metric] == pytest.approx(expected)


def test_irspack_ends_the_ideal_list_with_the_list():
    short = se.Rankings.from_topk([[0, -1, -1]], shape=(1, 8))
    gains = csr_matrix(([1.0] * 3, ([0] * 3, [0, 1, 2])), shape=(1, 8))
    assert se.evaluate(short, gains, "ndcg@3", convention="irspack")["ndcg@3"] == 1.0


def recsys2019(listed, gains, k):
    """Return the values of a user as Ferrari Dacrema, Cremonesi and Jannach define them."""
    top = [item for item in listed[:k] if item >= 0]
    hits = [item in gains for item in top]
    if not top:
        return dict.fromkeys(("ndcg", "map", "precision", "recall", "mrr", "arhr"), 0.0)

    def discounted(values):
        return sum((2**value - 1) / math.log(rank + 2) for rank, value in enumerate(values))

    precisions = [sum(hits[: rank + 1]) / (rank + 1) for rank, hit in enumerate(hits) if hit]
    reciprocal = [1 / (rank + 1) for rank, hit in enumerate(hits) if hit]
    return {
        "ndcg": discounted([gains.get(item, 0.0) for item in top])
        / discounted(sorted(gains.values(), reverse=True)),
        "map": sum(precisions) / min(len(gains), len(top)),
        "precision": sum(hits) / len(top),
        "recall": sum(hits) / len(gains),
        "mrr": max(reciprocal, default=0.0),
        "arhr": sum(reciprocal),
    }


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_the_evaluator_of_recsys2019(k, binary):
    rng = np.random.default_rng(k)
    held_out = rng.integers(0, 4, (30, 40)) * (rng.random((30, 40)) < 0.3)
    held_out[:, 0] = 1
    held_out = (held_out > 0).astype(np.int64) if binary else held_out
    listed = [rng.permutation(40)[: rng.integers(0, 15)].tolist() for _ in range(30)]
    padded = [items + [-1] * (15 - len(items)) for items in listed]
    of_users = [
        recsys2019(items, {i: float(g) for i, g in enumerate(row) if g}, k)
        for items, row in zip(listed, held_out.tolist(), strict=True)
    ]
    lists = se.Rankings.from_topk(padded, shape=held_out.shape)
    ev = se.evaluate(
        lists,
        csr_matrix(held_out.astype(np.float64)),
        [f"{name}@{k}" for name in of_users[0]],
        convention="recsys2019",
    )
    for name in of_users[0]:
        expected = [one[name] for one in of_users]
        assert ev.values(f"{name}@{k}") == pytest.approx(expected, rel=1e-12), name


def test_mind_notebook_counts_stored_zeros_as_hits():
    shown = csr_matrix(([1.0, 0.0, 0.0], ([0] * 3, [2, 0, 1])), shape=(1, 8))
    lists = se.Rankings.from_topk([[0, 1, 2]], shape=(1, 8))
    ev = se.evaluate(lists, shown, "dcg@3", convention="mind-notebook")
    assert ev["dcg@3"] == pytest.approx(1 + d(2) + d(3))


def test_the_numbers_of_the_tests_of_spark_with_relevance_values():
    # RankingMetricsSuite, "Ranking metrics: NDCG with relevance"
    lists = se.Rankings.from_topk(
        [
            [1, 6, 2, 7, 8, 3, 9, 10, 4, 5],
            [4, 1, 5, 6, 2, 7, 3, 8, 9, 10],
            [1, 2, 3, 4, 5, *[-1] * 5],
        ],
        shape=(3, 11),
    )
    gains = csr_matrix(
        ([3.0, 2.0, 1.0, 1.0, 1.0, 2.0], ([0] * 5 + [1], [1, 2, 3, 4, 5, 1])), shape=(3, 11)
    )
    ev = se.evaluate(lists, gains, "ndcg(gain=exp)@{3,5,10,15}", convention="spark")
    assert list(ev.mean().values()) == pytest.approx([0.511959, 0.487806, 0.5187, 0.5187], abs=1e-5)


def test_rectools_fills_every_slot():
    gains = csr_matrix(([1.0], ([0], [0])), shape=(1, 8))
    ev = se.evaluate(se.Rankings.from_topk([[0, 1, 2]]), gains, "ndcg@3", convention="rectools")
    assert ev["ndcg@3"] == pytest.approx(1 / (1 + d(2) + d(3)))
    for metric in ("ndcg", "ndcg@1000000000"):
        with raises(InvalidMetricError, metric=metric):
            se.evaluate(LISTS, WITHOUT_ZEROS, metric, convention="rectools")


@pytest.mark.parametrize("convention", REFUSING)
def test_stored_zeros_that_the_library_counts_are_an_error(convention):
    metric = "recall@3" if "recall" not in CONVENTIONS[convention].uncut else "recall"
    with raises(InvalidDataError):
        se.evaluate(LISTS, GAINS, metric, convention=convention)
    expected = se.evaluate(LISTS, WITHOUT_ZEROS, metric, convention=convention)
    stated = se.Relevance.from_csr(GAINS, threshold=1)
    assert np.array_equal(
        se.evaluate(LISTS, stated, metric, convention=convention).values(metric),
        expected.values(metric),
        equal_nan=True,
    )


def test_discounts_of_ranks_beyond_the_table():
    # beyond the ranks whose discounts are kept in a table
    far = csr_matrix(([5_000_000], ([0], [1])), shape=(1, 3))
    for convention, discount in (("lenskit", math.log2(5e6)), (None, math.log2(5e6 + 1))):
        ev = se.evaluate(far, csr_matrix([[0, 1, 0]]), "dcg", convention=convention)
        assert ev["dcg"] == pytest.approx(1 / discount, rel=1e-14)


@pytest.mark.parametrize(
    ("convention", "metric"),
    [
        ("recbole", "coverage@3"),
        ("recbole", "entropy@3"),
        ("rankereval", "mean_rank"),
        ("rankereval", "hit_rate@3"),
        ("napkinxc", "coverage@3"),
        ("evidently", "f1@3"),
        ("elliot", "map@3"),
        ("pyxclib", "auc"),
    ],
)
def test_refuses_what_the_library_counts_otherwise(convention, metric):
    with raises(InvalidMetricError):
        se.evaluate(LISTS, GAINS, metric, convention=convention)
    rows = CONVENTIONS[convention].differences()
    name = metric.partition("@")[0]
    assert [how for subject, how, _ in rows if subject == f"{name}: not reproduced"]


def test_what_has_no_cutoff_is_of_the_list_or_of_all_candidates():
    users, items = np.array([[1.0]]), np.arange(8.0)[:, None]
    relevant = csr_matrix(([1.0], ([0], [2])), shape=(1, 8))  # behind items 7 to 3
    train = csr_matrix((1, 8))
    metrics = ["mrr", "ndcg@3"]
    for name, expected in (("trec_eval", 0), ("lightfm", 1 / 6), ("cornac", 1 / 6)):
        ev = se.evaluate_model((users, items), train, relevant, metrics, convention=name)
        assert ev["mrr"] == expected
    with raises(InvalidMetricError):
        se.evaluate(LISTS, GAINS, "map@3", convention="cornac")


# The example of RePlay's documentation, with one list of three items.
REPLAY_LISTS = [[3, 7, 10, 11, 2], [5, 8, 11, 1, 3], [4, 9, 2, -1, -1]]
REPLAY_TRAIN = [[2, 5, 6, 8, 9], [1, 3, 5, 8, 11], [2, 4, 9]]


@pytest.mark.parametrize("train", [REPLAY_TRAIN, REPLAY_TRAIN[:1], []])
@pytest.mark.parametrize("name", ["surprisal", "Surprisal", "novelty(form=relative)"])
def test_surprisal_and_novelty_of_replay(name, train):
    """The values are from RePlay 0.22.0's Surprisal and Novelty, for the same lists and data."""
    pairs = [(user, item) for user, items in enumerate(train) for item in items]
    users, items = zip(*pairs, strict=True) if pairs else ((), ())
    seen = csr_matrix((np.ones(len(pairs)), (users, items)), shape=(3, 12))
    lists = se.Rankings.from_topk(REPLAY_LISTS, shape=(3, 12))
    truth = csr_matrix(np.eye(3, 12))
    asked = [f"{name}@{{2,3,5,8}}", "novelty@{2,3,5,8}"]
    ev = se.evaluate(lists, truth, asked, convention="replay", train=seen)
    for k in (2, 3, 5, 8):
        surprisal, novelty = REPLAY_VALUES[len(train)][k]
        assert ev.values(f"{name}@{k}") == pytest.approx(surprisal, nan_ok=True)
        assert ev.values(f"novelty@{k}")[: len(train)] == pytest.approx(novelty)


def test_surprisal_is_understood_in_every_spelling():
    for name in ("surprisal@3", "surprisal_3", "Surprisal@{3}", "surprisal(form=relative)@3"):
        assert list(map(str, parse(name, CONVENTIONS["replay"].options))) == [
            "novelty(form=relative)@3"
        ]
        assert parse(name)[0].name == "novelty"
    other = parse("surprisal(form=unseen)@3", CONVENTIONS["replay"].options)
    assert list(map(str, other)) == ["novelty@3"]


NAN = math.nan
REPLAY_VALUES = {
    3: {
        2: ([1.0, 0.3690702464285426, 0.6845351232142713], [1.0, 0.0, 0.0]),
        3: ([1.0, 0.579380164285695, 0.5793801642856952], [1.0, 0.0, 0.0]),
        5: ([0.8738140492857085, 0.7476280985714171, 0.3476280985714171], [0.8, 0.0, 0.0]),
        8: ([0.5461337808035678, 0.4672675616071357, 0.21726756160713567], [0.8, 0.0, 0.0]),
    },
    1: {
        2: ([1.0, NAN, NAN], [1.0]),
        3: ([1.0, NAN, NAN], [1.0]),
        5: ([NAN, NAN, NAN], [0.8]),
        8: ([NAN, NAN, NAN], [0.8]),
    },
    0: {
        2: ([1.0, 1.0, 1.0], []),
        3: ([1.0, 1.0, 1.0], []),
        5: ([1.0, 1.0, 0.6], []),
        8: ([0.625, 0.625, 0.375], []),
    },
}


@pytest.mark.parametrize("name", ["trec", "IMPLICT", "", 7])
def test_refuses_unknown_conventions(name):
    with raises(InvalidMetricError):
        se.evaluate(LISTS, GAINS, "mrr", convention=name)


@pytest.mark.parametrize("name", CONVENTIONS)
def test_differences_name_everything_that_differs(name):
    rules = CONVENTIONS[name]
    rows = rules.differences()
    assert bool(rows) == (rules is not STANDARD)
    for subject, here, standard in rows:
        assert subject
        assert here != standard
    for metric, options in rules.options.items():
        registered = {option.name: option for option in definition(metric).options}
        for option, value in options.items():
            assert registered[option].canonical(value) == value
            assert value != registered[option].default


def test_a_changed_convention_pickles_by_value():
    changed = replace(CONVENTIONS["lenskit"], no_relevant="exclude")
    copy = pickle.loads(pickle.dumps(changed))  # noqa: S301
    assert copy == changed != CONVENTIONS["lenskit"]
