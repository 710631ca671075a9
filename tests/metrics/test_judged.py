"""Measures that know what was judged, judged items alone, and those of trec_eval."""

import math
from statistics import fmean

import judged_oracle as plain
import numpy as np
import oracle
import pytest
from cases import cases, same_values, to_csr
from hypothesis import given
from hypothesis import strategies as st
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError

CUT = ["bpref", "infap", "judged", "num_ret", "num_rel_ret", "num_nonrel_judged_ret", "utility"]
WHOLE = [*CUT, "num_rel", "set_precision", "set_relative_precision", "set_map", "set_f"]

#: Names, options and their values. A measure without a cut-off has an infinite one.
OPTIONS = [
    ("set_f", "beta", ("0.5", "2")),
    ("r_precision", "multiple", ("0.2", "0.6", "1.4", "2", "0.25")),
    ("iprec_at_recall", "level", ("0", "0.1", "0.3", "0.5", "0.7", "1", "0.25")),
]
ROWS = [
    *((f"{name}@{k}", name, "", k) for name in CUT for k in (1, 3, 20)),
    *((name, name, "", math.inf) for name in (*WHOLE, "iprec_at_recall")),
    ("iprec_at_recall@3", "iprec_at_recall", "", 3),
    *(
        (f"{name}({option}={value})", name, value, math.inf)
        for name, option, values in OPTIONS
        for value in values
    ),
]
NAMES = [name for name, *_ in ROWS]
ACCURACY = oracle.spelled(oracle.METRICS)


def same_measures(ev, users, **options):
    for spelling, *measure in ROWS:
        expected = [plain.value(*measure, *user, **options) for user in users]
        found = ev.values(spelling)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15, err_msg=spelling)


@given(cases())
def test_every_measure_equals_its_definition(case):
    case = case.without_gaps()
    users = list(zip(case.ranked, case.relevant, strict=True))
    geometric = ["map(average=geometric)", "bpref(average=geometric)"]
    ev = se.evaluate(*case.matrices, [*NAMES, *geometric])
    same_measures(ev, users)
    zero = se.evaluate(*case.matrices, se.Protocol([*NAMES, *geometric], no_relevant="zero"))
    same_measures(zero, users, left_out=False)
    precisions = [oracle.value("map", {}, None, *user) for user in users]
    preferences = [plain.value("bpref", "", math.inf, *user) for user in users]
    for name, values in zip(geometric, (precisions, preferences), strict=True):
        defined = [value for value in values if not math.isnan(value)]
        assert ev[name] == pytest.approx(plain.geometric(defined))
        assert zero[name] == pytest.approx(plain.geometric(np.nan_to_num(values)))


@pytest.mark.filterwarnings("ignore:judged_only=True, but every item")
@given(cases())
def test_judged_items_alone_are_condensed_lists(case):
    case = case.without_gaps()
    protocol = se.Protocol([*NAMES, *(name for name, *_ in ACCURACY)], judged_only=True)
    ev = se.evaluate(*case.matrices, protocol)
    pairs = zip(case.ranked, case.relevant, strict=True)
    judged = case._replace(
        ranked=[plain.condensed(*pair) for pair in pairs], seen=[set() for _ in case.seen]
    )
    same_measures(ev, list(zip(judged.ranked, judged.relevant, strict=True)))
    same_values(ev, ACCURACY, judged.users([set(gains) for gains in case.relevant]))


@pytest.mark.filterwarnings("ignore:judged_only=True, but every item")
@given(
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=6),
    st.dictionaries(st.integers(0, 5), st.sampled_from([0.0, 1.0, 2.0])),
    st.sampled_from([1, 2, 6]),
)
def test_tied_items_are_condensed_as_all_their_orders(scores, relevant, k):
    relevant = {item: gain for item, gain in relevant.items() if item < len(scores)} | {0: 1.0}
    judged = sorted(relevant)
    gains = {place: relevant[item] for place, item in enumerate(judged)}
    orders = oracle.orders([scores[item] for item in judged])
    expected = fmean(oracle.value("ndcg", {}, k, order, gains) for order in orders)
    tied = se.Rankings.from_scores([scores], ties="average")
    truth = to_csr([relevant], np.float64, len(scores))
    ev = se.evaluate(tied, truth, se.Protocol(f"ndcg@{k}", judged_only=True))
    assert ev[f"ndcg@{k}"] == pytest.approx(expected, rel=1e-12)


#: The judgements and lists below are from a worked example that trec_eval 9 was run on.
GAINS = to_csr([{0: 1, 1: 0, 2: 2, 4: 0, 5: 1}], np.float64, 8)
LISTS = se.Rankings.from_topk([[7, 1, 0, 6, 2, 4, 3]], shape=(1, 8))
PRINTED = {
    "num_ret": 7, "num_rel": 3, "num_rel_ret": 2, "map": 0.24444444444444446,
    "Rprec": 1 / 3, "bpref": 1 / 3, "recip_rank": 1 / 3, "infAP": 0.2444455555333338,
    "iprec_at_recall_0.00": 0.4, "iprec_at_recall_0.50": 0.4, "iprec_at_recall_0.70": 0.4,
    "iprec_at_recall_0.80": 0, "iprec_at_recall_1.00": 0, "11pt_avg": 0.2909090909090909,
    "P_5": 0.4, "P_10": 0.2, "recall_5": 2 / 3, "success_1": 0, "success_5": 1,
    "relative_P_5": 2 / 3, "Rprec_mult_0.20": 0, "Rprec_mult_0.80": 1 / 3,
    "Rprec_mult_1.20": 0.25, "Rprec_mult_1.40": 0.4, "Rprec_mult_1.80": 1 / 3,
    "Rprec_mult_2.00": 1 / 3, "utility": -3, "ndcg": 0.4068138587319517,
    "ndcg_cut_5": 0.4068138587319517, "map_cut_5": 0.24444444444444446,
    "set_P": 2 / 7, "set_relative_P": 2 / 3, "set_recall": 2 / 3, "set_map": 4 / 21,
    "set_F": 0.4, "num_nonrel_judged_ret": 2,
    "rbp": 0.1 * (0.9**2 + 0.9**4),  # more patient than by default, with hits at ranks 3 and 5
    "gm_map": math.exp(-1.4087672169719492), "gm_bpref": math.exp(-1.0986122886681098),
}  # fmt: skip


@pytest.mark.parametrize("printed", PRINTED)
def test_names_and_numbers_of_trec_eval(printed):
    ev = se.evaluate(LISTS, GAINS, printed, convention="trec_eval")
    (found,) = ev.mean().values()
    assert found == pytest.approx(PRINTED[printed], abs=1e-15)


def test_how_many_hits_a_level_of_recall_is():
    # of 3 relevant items, 0.7 is 2.1: three hits, or two to trec_eval, where 0.7 · 3 + 0.9 < 3
    lists = se.Rankings.from_topk([[0, 9, 1, 8, 2]], shape=(1, 10))
    gains = to_csr([{0: 1, 1: 1, 2: 1}], np.float64, 10)
    for level, expected in (("0.7", [3 / 5, 2 / 3, 2 / 3]), ("0.3", [1, 1, 1])):
        for rounding, value in zip(("up", "trec9", "nearest"), expected, strict=True):
            name = f"iprec_at_recall(level={level},rounding={rounding})"
            assert se.evaluate(lists, gains, name)[name] == pytest.approx(value)


def test_refuses_lists_that_do_not_say_where_judged_items_are():
    positions = csr_matrix([[1, 0, 4, 0, 0]])  # what is at 2 and 3?
    judged = to_csr([{0: 1.0, 2: 0.0}], np.float64, 5)
    assert se.evaluate(positions, judged, "bpref")["bpref"] == 1.0
    assert se.evaluate(positions, judged, se.Protocol("mrr", judged_only=True))["mrr"] == 1.0
    more = to_csr([{0: 1.0, 3: 0.0}], np.float64, 5)
    for protocol in ("bpref", "judged@2", se.Protocol("mrr", judged_only=True)):
        with raises(InvalidDataError, user=0):
            se.evaluate(positions, more, protocol)
    assert se.evaluate(positions, more, "mrr")["mrr"] == 1.0
    tied = se.Rankings.from_scores([[2.0, 1.0, 1.0]], ties="average", k=2)
    with raises(InvalidDataError, user=0):
        se.evaluate(tied, csr_matrix([[1.0, 1.0, 0]]), se.Protocol("ndcg@2", judged_only=True))
    with raises(InvalidMetricError):
        se.evaluate(LISTS, GAINS, se.Protocol("mrr", judged_only=True), candidates=np.arange(5))


def test_users_without_a_list_count_or_not():
    lists = se.Rankings.from_topk([[0, 1], [-1, -1], [2, 0]])
    gains = to_csr([{0: 1.0}, {1: 1.0}, {0: 0.0}], np.float64, 3)
    metrics = ["mrr", "gm_map"]
    cut = se.evaluate(lists, gains, metrics, convention="trec_eval")
    assert cut["mrr"] == 1 / 2  # of the users in the run
    assert cut["map(average=geometric)"] == pytest.approx(math.sqrt(1e-5))
    protocol = se.Protocol(metrics, convention="trec_eval", without_list="zero")
    whole = se.evaluate(lists, gains, protocol)
    assert whole["mrr"] == 1 / 3  # of those in the qrels, as with -c
    assert whole["map(average=geometric)"] == pytest.approx(1e-5 ** (2 / 3))
    assert se.evaluate(lists, gains, "mrr")["mrr"] == 1 / 2
    assert se.evaluate(lists, gains, se.Protocol("mrr", without_list="exclude"))["mrr"] == 1
    with raises(InvalidDataError):
        se.compare({"this": cut, "other": whole})


def test_first_positions_of_lists():
    gapped = se.Rankings.from_positions(csr_matrix([[1, 0, 4, 2], [0, 0, 3, 0]]))
    cut = gapped.head(3)
    assert cut.to_positions().toarray().tolist() == [[1, 0, 0, 2], [0, 0, 3, 0]]
    assert cut.lengths.tolist() == [3, 3]
    assert len(gapped.head(2**70).items) == len(gapped.items)
    scores = [[0.9, 0.5, 0.5, 0.1], [0.3, 0.3, 0.3, 0.3]]
    truth = csr_matrix([[0, 1.0, 0, 1], [1, 0, 0, 0]])
    tied, short = (se.Rankings.from_scores(scores, ties="average", k=k) for k in (None, 2))
    assert se.evaluate(tied.head(2), truth, "dcg").mean() == se.evaluate(short, truth, "dcg").mean()
    with raises(InvalidDataError, argument="k"):
        gapped.head(0)


def test_formulas_of_others_can_use_judgements():
    @se.register_metric("judged_twice", "judged items, and those of the list", uses=["judged"])
    def judged_twice(s):
        return s.judged_items + s.hits / 10

    # 5 items are judged, 2 of them within the first 3
    assert se.evaluate(LISTS, GAINS, "judged_twice@3")["judged_twice@3"] == 5.2
