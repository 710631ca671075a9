"""What each convention changes, on users whose numbers can be worked out by hand."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from cases import of_sets, to_csr
from public_calls import problem, spelled
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError
from sparse_eval.metrics import CONVENTIONS, STANDARD, parse
from sparse_eval.metrics.registry import definition
from sparse_eval.testing import check_metric

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


def d(rank):
    return 1 / math.log2(rank + 1)


BINARY = d(1) + d(3)  # the dcg of user 0
#: Its ndcg by gains and by hits alone, and the sum of its precisions at hits
GRADED, PLAIN, SUM = (1 + 2 * d(3)) / (2 + d(2) + d(3)), BINARY / (1 + d(2) + d(3)), 1 + 2 / 3
EXPECTED = {
    # of user 0 at 3: ndcg, map, precision, recall, None where it has none; and the users that
    # count for recall
    **dict.fromkeys(
        (None, "trec_eval", "lightfm", "recometrics", "evidently"),
        (GRADED, SUM / 4, 2 / 3, 2 / 4, 3),
    ),
    **dict.fromkeys(
        ("rectools", "cornac", "lightgcn", "recpack"), (PLAIN, SUM / 4, 2 / 3, 2 / 4, 3)
    ),
    **dict.fromkeys(("napkinxc", "pyxclib"), (PLAIN, SUM / 4, 2 / 3, 2 / 4, 5)),
    **dict.fromkeys(("recbole", "replay"), (PLAIN, SUM / 3, 2 / 3, 2 / 4, 3)),
    **dict.fromkeys(
        ("recommenders", "irspack", "mind-notebook"), (PLAIN, SUM / 4, 2 / 3, 2 / 4, 2)
    ),
    "rankereval": (GRADED, SUM / 3, 2 / 3, 2 / 4, 3),
    "implicit": (PLAIN, SUM / 3, None, 2 / 4, 3),
    "ranx": (GRADED, SUM / 4, 2 / 3, 2 / 4, 4),
    "elliot": ((1 + 3 * d(3)) / (3 + d(2) + d(3)), None, 2 / 3, 2 / 4, 2),
    "tensorflow-recommenders": (GRADED, SUM / 4, 2 / 3, None, 3),
    "lenskit": ((1 + d(2)) / (2 + d(2)), SUM / 3, 2 / 3, 2 / 3, 5),
    "spark": (PLAIN, SUM / 3, 2 / 3, 2 / 4, 5),
    "sklearn": (GRADED, SUM / 4, 2 / 3, 2 / 4, 5),
    "torchmetrics": (GRADED, SUM / 2, 2 / 3, 2 / 4, 5),
    "recsys2019": ((1 + 3 * d(3)) / (3 + d(2) + d(3) + d(4)), SUM / 3, 2 / 3, 2 / 4, 3),
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
    gains = GAINS
    if rules.zeros == "error":
        with raises(InvalidDataError):
            se.evaluate(LISTS, GAINS, list(expected), convention=convention)
        gains = WITHOUT_ZEROS
    ev = se.evaluate(LISTS, gains, list(expected), convention=convention)
    assert {m: ev.values(m)[0] for m in expected} == pytest.approx(expected)
    assert ev.request.convention.name == (convention or "standard")
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


FAR = 5_000_000  # a rank beyond the table of discounts


@pytest.mark.parametrize(
    ("convention", "ranks", "gains", "metric", "expected"),
    [
        ("irspack", {0: 1}, {0: 1, 1: 1, 2: 1}, "ndcg@3", 1.0),  # the ideal list ends too
        ("rectools", {0: 1}, {0: 1}, "ndcg@3", 1 / (1 + d(2) + d(3))),  # every slot is filled
        ("mind-notebook", {0: 1, 1: 2, 2: 3}, {0: 0, 1: 0, 2: 1}, "dcg@3", 1 + d(2) + d(3)),
        (None, {1: FAR}, {1: 1}, "dcg", d(FAR)),
        ("lenskit", {1: FAR}, {1: 1}, "dcg", d(FAR - 1)),
    ],
)
def test_one_user(convention, ranks, gains, metric, expected):
    lists, relevant = to_csr([ranks], int, 8), to_csr([gains], float, 8)
    ev = se.evaluate(lists, relevant, metric, convention=convention)
    assert ev[metric] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("name", ["ndcg", "map", "precision", "recall", "mrr", "arhr"])
@pytest.mark.parametrize("k", [1, 3, 10])
def test_the_evaluator_of_recsys2019(k, name):
    """By the definitions of Ferrari Dacrema, Cremonesi and Jannach."""

    def discounted(values):
        return sum((2**value - 1) / math.log(rank + 2) for rank, value in enumerate(values))

    def expected(items, gains):
        top = items[:k]
        hits = [item in gains for item in top]
        if not any(hits):
            return 0.0
        precisions = [sum(hits[:rank]) / rank for rank, hit in enumerate(hits, 1) if hit]
        reciprocal = [1 / rank for rank, hit in enumerate(hits, 1) if hit]
        return {
            "ndcg": discounted([gains.get(item, 0.0) for item in top])
            / discounted(sorted(gains.values(), reverse=True)),
            "map": sum(precisions) / min(len(gains), len(top)),
            "precision": sum(hits) / len(top),
            "recall": sum(hits) / len(gains),
            "mrr": max(reciprocal),
            "arhr": sum(reciprocal),
        }[name]

    protocol = se.Protocol(f"{name}@{k}", convention="recsys2019")
    check_metric(protocol, expected=expected, n_problems=4)


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
    pairs = [0] * 5 + [1] * 3, [1, 2, 3, 4, 5, 1, 2, 3]
    gains = csr_matrix(([3.0, 2.0, 1.0, 1.0, 1.0, 2.0, 0.0, 0.0], pairs), shape=(3, 11))
    with raises(InvalidDataError):
        se.evaluate(lists, gains, "precision@5", convention="spark")
    graded = gains.copy()
    graded.eliminate_zeros()
    ev = se.evaluate(lists, graded, "ndcg(gain=exp)@{3,5,10,15}", convention="spark")
    assert list(ev.mean().values()) == pytest.approx([0.511959, 0.487806, 0.5187, 0.5187], abs=1e-5)
    names = ["precision@5", "recall@10", "map"]  # of labels, also those of relevance 0
    labels = csr_matrix((np.ones(8), pairs), shape=(3, 11))
    ev = se.evaluate(lists, labels, names, convention="spark")
    assert list(ev.mean().values()) == pytest.approx([0.8 / 3, 2 / 3, 0.355026], abs=1e-6)


@pytest.mark.parametrize(
    "name", [name for name, rules in CONVENTIONS.items() if rules.zeros != "error"]
)
def test_stored_zeros_are_misses_or_hits_in_every_metric(name):
    given = problem()
    without = given.zeros.copy()
    without.eliminate_zeros()
    metrics = [
        metric
        for metric in spelled(name, "@5", "")
        if not definition(metric.split("(")[0].split("@")[0]).uses.count("judged")
    ]
    options = {"convention": name, "train": given.train, "item_data": given.items}
    stored, dropped = (
        se.evaluate(given.lists, truth, metrics, **options) for truth in (given.zeros, without)
    )
    users = (dropped._values.n_relevant > 0) & (np.diff(given.lists.indptr) > 0)
    assert users.sum() > 100
    same = [
        np.array_equal(one[users], other[users], equal_nan=True)
        for one, other in zip(stored._values.columns, dropped._values.columns, strict=True)
    ]
    assert all(same) == (CONVENTIONS[name].zeros == "miss")
    # Otherwise a zero is a hit, and no more.
    assert all(same[stored.keys().index(metric)] for metric in ("idcg@5", "num_ret@5"))


def test_trec_eval_raises_an_error_for_fractions_that_it_cuts():
    lists = se.Rankings.from_topk([[0, 1]], shape=(1, 3))
    for gain in (0.5, 2.5):
        gains = csr_matrix([[1.0, gain, 0.0]])
        with raises(InvalidDataError):
            se.evaluate(lists, gains, "ndcg", convention="trec_eval")
        assert se.evaluate(lists, gains, "ndcg")["ndcg"] > 0
        whole = gains.floor()
        assert se.evaluate(lists, whole, "ndcg", convention="trec_eval")["ndcg"] > 0


@pytest.mark.parametrize(
    ("convention", "metric"),
    [
        ("rankereval", "hit_rate@3"),
        ("cornac", "map@3"),
        ("rectools", "ndcg@1000000000"),
        ("IMPLICT", "mrr"),
        (7, "mrr"),
    ],
)
def test_refuses_what_no_library_does(convention, metric):
    with raises(InvalidMetricError):
        se.evaluate(LISTS, WITHOUT_ZEROS, metric, convention=convention)


def test_what_has_no_cutoff_is_of_the_list_or_of_all_candidates():
    users, items = np.array([[1.0]]), np.arange(8.0)[:, None]
    relevant = csr_matrix(([1.0], ([0], [2])), shape=(1, 8))  # behind items 7 to 3
    train = csr_matrix((1, 8))
    metrics = ["mrr", "ndcg@3"]
    for name, expected in (("trec_eval", 0), ("lightfm", 1 / 6), ("cornac", 1 / 6)):
        ev = se.evaluate_model((users, items), train, relevant, metrics, convention=name)
        assert ev["mrr"] == expected


# The example of RePlay's documentation, with one list of three items.
REPLAY_LISTS = [[3, 7, 10, 11, 2], [5, 8, 11, 1, 3], [4, 9, 2, -1, -1]]
REPLAY_TRAIN = [[2, 5, 6, 8, 9], [1, 3, 5, 8, 11], [2, 4, 9]]


@pytest.mark.parametrize("train", [REPLAY_TRAIN, REPLAY_TRAIN[:1], []])
def test_surprisal_and_novelty_of_replay(train):
    """The values are from RePlay 0.22.0's Surprisal and Novelty, for the same lists and data."""
    seen = of_sets([*train, (), (), ()][:3], 12)
    lists = se.Rankings.from_topk(REPLAY_LISTS, shape=(3, 12))
    asked = ["surprisal@{2,3,5,8}", "novelty@{2,3,5,8}"]
    ev = se.evaluate(lists, csr_matrix(np.eye(3, 12)), asked, convention="replay", train=seen)
    for k, (surprisal, novelty) in REPLAY_VALUES[len(train)].items():
        assert ev.values(f"novelty(form=relative)@{k}") == pytest.approx(surprisal, nan_ok=True)
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
