"""Parsing and printing metrics, and what is refused."""

import re
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises

from sparse_eval.errors import InvalidMetricError
from sparse_eval.metrics import REGISTRY, Choice, Metric, parse, parse_metrics
from sparse_eval.metrics.grammar import _split
from sparse_eval.metrics.registry import ALIASES, ALIASES_WITH_OPTION


def values_of(option):
    if isinstance(option, Choice):
        return st.sampled_from(option.values)
    numbers = st.floats(option.above, min(option.below, 1e6), exclude_min=True, exclude_max=True)
    return numbers.map(lambda number: option.canonical(repr(number)))


@st.composite
def metrics(draw):
    entry = draw(st.sampled_from(list(REGISTRY.values())))
    cutoff = draw(st.integers(entry.formula.least_cutoff, 1000))
    if entry.cutoff == "none" or (entry.cutoff == "optional" and draw(st.booleans())):
        cutoff = None
    chosen = {option.name: (draw(values_of(option)), option.default) for option in entry.options}
    options = [(name, value) for name, (value, default) in chosen.items() if value != default]
    return Metric(entry.name, cutoff, tuple(sorted(options)))


@given(metrics())
def test_a_metric_prints_as_it_is_parsed(metric):
    assert parse(str(metric)) == (metric,)
    assert parse(f"  {str(metric).upper()} ") == (metric,)


@given(st.text(max_size=20))
def test_parses_or_refuses_any_text(text):
    try:
        parsed = parse(text)
    except InvalidMetricError as error:
        assert str(error)  # noqa: PT017
    else:
        assert parse(",".join(map(str, parsed))) == parsed


def names(text):
    return [str(metric) for metric in parse_metrics(text)]


def test_parses_lists_braces_and_defaults():
    assert names("ndcg@{5,10,20}") == ["ndcg@5", "ndcg@10", "ndcg@20"]
    assert names("NDCG(gain=EXP)@{1, 2}, mrr") == ["ndcg(gain=exp)@1", "ndcg(gain=exp)@2", "mrr"]
    assert names("ndcg(gain=linear)@5") == names("ndcg()@5") == ["ndcg@5"]
    assert names("map(normalizer=min)@5,mrr@5") == ["map(normalizer=min)@5", "mrr@5"]
    assert names("rbp(p=.80)@5, rbp(p=8e-1)@5,rbp(p=0.5)@5") == ["rbp@5", "rbp(p=0.5)@5"]
    assert names("err(max=4.0)@5") == ["err(max=4)@5"]
    assert [str(m) for m in parse_metrics(["mrr", Metric("mrr"), "MRR"])] == ["mrr"]


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("Hit-Ratio@{5,10}", "hit_rate@5,hit_rate@10"),
        ("success_1", "hit_rate@1"),
        ("P_5", "precision@5"),
        ("mpr", "percentile_rank"),
        ("MAP, AP@10, map_cut_10", "map,map@10"),
        ("rr,recip_rank,RR@10", "mrr,mrr@10"),
        ("nDCG@10, ndcg_cut_10, NDCG_10, ndcg_at_10, ndcg10, NDCG@10", "ndcg@10"),
        ("precision_at_10", "precision@10"),
        ("recall@10,20, mrr, f1@ 5 , 6", "recall@10,recall@20,mrr,f1@5,f1@6"),
        ("Rprec", "r_precision"),
        ("ndcg_10(gain=exp)", "ndcg(gain=exp)@10"),
        ("r_precision@5", "r_precision@5"),
        ("gm_map, gm_bpref", "map(average=geometric),bpref(average=geometric)"),
        ("relative_P_10", "precision(denominator=min)@10"),
        (
            "iprec_at_recall_0.10, iprec_at_recall_1.00",
            "iprec_at_recall(level=0.1),iprec_at_recall(level=1)",
        ),
        ("11pt_avg", "iprec_at_recall"),
        ("Rprec_mult_0.20, Rprec_mult_1.00", "r_precision(multiple=0.2),r_precision"),
        (
            "set_P, set_relative_P, set_F, set_recall",
            "set_precision,set_relative_precision,set_f,recall",
        ),
        ("gm_map(normalizer=min)@5", "map(average=geometric,normalizer=min)@5"),
    ],
)
def test_other_names_become_canonical(text, canonical):
    assert ",".join(names(text)) == canonical


def test_other_names_are_no_names_of_metrics():
    assert not (ALIASES.keys() | ALIASES_WITH_OPTION.keys()) & REGISTRY.keys()
    assert {name for meant in ALIASES.values() for name in meant} <= REGISTRY.keys()
    assert Metric("hr", 10).definition is REGISTRY["hit_rate"]
    assert list(map(str, parse_metrics(Metric("hr", 10)))) == ["hit_rate@10"]


@pytest.mark.parametrize(
    "text",
    [
        "hits@10",
        "p_5@10",
        "ndgc@10",
        "iprec_at_recall_1.50",
        "iprec_at_recall_0.1.2",
        "P_0",
        "ndcg@0",
        "ndcg@1.5",
        "ndcg@",
        "ndcg@{5",
        "ndcg@5,",
        "ndcg@²",
        "ndcg@9223372036854775808",
        "diversity@1",
        "ndcg(gian=exp)@5",
        "ndcg(gain=expo)@5",
        "ndcg(gain)@5",
        "ndcg(gain=exp,gain=exp)@5",
        "mrr(gain=exp)@5",
        "rbp(p=1)@5",
        "rbp(p=nan)@5",
        "err(max=1e999)@5",
        "f1(beta=1e200)@10",  # its square is not finite
        "mean_rank@5",
        "precision",
        "ndcg(gain=exp@5",
        "",
    ],
)
def test_refuses_invalid_metrics(text):
    with raises(InvalidMetricError):
        parse_metrics(text)


@pytest.mark.parametrize("nothing", [[], 5, [None]])
def test_refuses_what_names_no_metric(nothing):
    with pytest.raises(InvalidMetricError):
        parse_metrics(nothing)


@given(st.text("a1,(){}@ \n", max_size=40))
def test_commas_outside_brackets_separate(text):
    # A comma is inside if no opening bracket stands between it and a closing one behind it.
    assert _split(text) == re.split(r",(?![^({]*[)}])", text)


@pytest.mark.parametrize("text", ["ndcg@{%s1}", "%smrr", "ndcg(%sgain=exp)@1", "%s)", "(%s"])
@pytest.mark.parametrize("repeated", ["1,", "mrr,", "gain=exp,", "(,", "),", "{,}"])
def test_time_grows_with_the_length_of_the_text(text, repeated):
    start = time.process_time()
    with suppress(InvalidMetricError):
        parse(text % (repeated * 10_000))
    assert time.process_time() - start < 5  # a fifth of a second; its square would be minutes
