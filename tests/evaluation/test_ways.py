"""One number by every way: each convention, whatever the inputs are and whoever evaluates them."""

import warnings

import numpy as np
import pytest
from raising import raises
from scipy.sparse import csr_matrix
from ways import WAYS, by_executor, by_memory, by_objects, by_parquet, small_blocks, without_users
from ways_cases import Case, check_against_plain, make_case, same

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.metrics import CONVENTIONS

#: The lists of a few users may have gaps at rank 1.
pytestmark = pytest.mark.filterwarnings("ignore:no list has a rank 1")


#: The conventions of the default run; `tests/net` has the numbers of all.
SHORT = ("standard", "trec_eval")


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
@pytest.mark.parametrize(
    ("convention", "no_relevant"),
    [
        *(
            pytest.param(name, None, marks=[pytest.mark.long] * (name not in SHORT))
            for name in CONVENTIONS
        ),
        ("standard", "zero"),
        ("standard", "judged"),
    ],
)
def test_every_way_gives_one_number(convention, no_relevant, seed):
    number = list(CONVENTIONS).index(convention)
    kind = ("ranks", "gaps", "ties")[(seed + number) % 3]
    case = make_case(seed, kind=kind, n_users=12).accepted(convention)
    metrics = case.metrics(convention)
    protocol = se.Protocol(metrics, convention=convention, no_relevant=no_relevant)
    expected = se.evaluate(case.positions, case.validation, protocol)
    if no_relevant is None:
        check_against_plain(expected, case)
    with small_blocks():
        # By default some of the ways, others for the next convention.
        for way in WAYS if seed or no_relevant else WAYS[number % 4 :: 4]:
            same(way(case, protocol, {}), expected)


def model_case(case):
    """Return a model, what its users have seen, and the case with the lists that it makes.

    Scores are different whole numbers. A user who has seen every item gets no list.
    """
    rng = np.random.default_rng(len(case.gains) + case.n_items)
    n_users, n_items = len(case.gains), case.n_items
    users = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], np.float32)[rng.integers(0, 4, n_users)]
    items = np.stack([rng.permutation(n_items), rng.permutation(n_items)], axis=1)
    items = items.astype(np.float32) + 1
    seen = rng.random((n_users, n_items)) < 0.3
    seen[case.validation.toarray() > 0] = False
    if n_users > 2:
        seen[2] = True
        case.gains[2].clear()
    ranked = []
    for user, scores in enumerate(users @ items.T):
        unseen = [i for i in np.argsort(-scores, kind="stable").tolist() if not seen[user, i]]
        ranked.append({item: rank for rank, item in enumerate(unseen[:3], 1)})
    return (users, items), csr_matrix(seen * 1.0), Case(ranked, case.gains, None, n_items)


@pytest.mark.parametrize("lists", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_every_way_from_a_model_gives_one_number(convention, lists):
    model, train, case = model_case(make_case(3, n_users=8).accepted(convention))
    held, rules = case.validation, CONVENTIONS[convention]
    # For whole rankings see tests/models/test_ways.py.
    names = case.metrics(convention, lists=lists)
    metrics = [name for name in names if rules.uncut.get(name) != "candidates"]
    protocol = se.Protocol(metrics, convention=convention)
    expected = se.evaluate_model(model, train, held, protocol, keep="lists")
    check_against_plain(expected, case)
    same(se.evaluate_model(model, train, held, protocol), expected)
    same(se.evaluate(case.positions, held, protocol, train=train), expected)


@pytest.mark.long
@pytest.mark.parametrize("convention", [n for n, c in CONVENTIONS.items() if c.zeros == "error"])
def test_zeros_that_the_library_counts_are_an_error(convention):
    options = {"convention": convention}
    model, train, case = model_case(make_case(7, n_users=25))
    assert any(0.0 in row.values() for row in case.gains)
    with small_blocks():
        for way in (by_memory, by_parquet):
            with raises(InvalidDataError):
                way(case, ["precision@3"], options)
    with raises(InvalidDataError):
        se.evaluate_model(model, train, case.validation, "precision@3", **options)
    stated = se.Relevance.from_csr(case.validation, threshold=0.5)
    se.evaluate_model(model, train, stated, "precision@3", **options)


def warned(evaluate):
    """Count the warnings that no list has a rank 1."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate()
    return sum("no list has a rank 1" in str(one.message) for one in caught)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("firsts", [[6] * 8, [7, 6, 8, 9, 6, 7, 7, 6], [6, 6, 6, 6, 1, 6, 6, 6]])
def test_every_way_warns_once_if_lists_begin_after_rank_1(way, firsts):
    ranked = [{user % 4: first, 4: first + 1} for user, first in enumerate(firsts)]
    case = Case(ranked, [{4: 1.0, 5: 1.0} for _ in firsts], None, 6)
    with small_blocks():
        assert warned(lambda: way(case, ["ndcg@9", "recall@9"], {})) == (min(firsts) > 1)


def test_ranks_of_relevant_items_need_no_rank_1():
    held = csr_matrix(np.arange(6) >= np.full((5, 1), 4), dtype=float)
    factors = np.ones((5, 1)), np.array([[4.0], [3], [2], [1], [0], [0]])
    lists = se.ranks(factors, held, k=6)
    assert lists.positions.min() == 5
    for call in (
        lambda: se.evaluate(lists, held, "ndcg@9"),
        lambda: se.evaluate(lists, held, "ndcg@9", memory=10**9),
        lambda: se.evaluate_model(factors, csr_matrix(held.shape), held, "ndcg@6"),
    ):
        assert not warned(call)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("way", [by_objects, by_memory, without_users, by_executor])
def test_a_number_about_nobody_is_an_error(way):
    @se.register_metric("listed_share", "", over="lists", per_user=False)
    def listed_share(lists):
        return float(lists.n_listed / int(lists.n_users))

    case = Case([{}] * 6, [{0: 1.0, 2: 1.0}] * 6, None, 3)
    protocol = se.Protocol("listed_share@3", without_list="exclude")
    with small_blocks(), raises(InvalidDataError):
        way(case, protocol, {}).mean()
