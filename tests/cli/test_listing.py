"""Test the command metrics: the list of metrics, their descriptions, conventions."""

from __future__ import annotations

import json

from commands import Command


def test_lists_and_describes_every_metric(command: Command) -> None:
    from sparse_eval.metrics import REGISTRY

    _, printed, _ = command("metrics", "--format", "json")
    assert len(json.loads(printed)) == len(REGISTRY)
    for name in REGISTRY:
        status, printed, _ = command("metrics", name)
        assert status == 0
        assert REGISTRY[name].text in printed
        assert REGISTRY[name].plain in printed
    status, printed, said = command("metrics", "ndgc")
    assert (status, printed) == (2, "")
    assert said == "error: there is no metric 'ndgc'; did you mean 'ndcg' or 'psndcg'?\n"


def test_shows_what_a_convention_changes(command: Command) -> None:
    status, printed, _ = command("metrics", "--convention", "implicit")
    assert status == 0
    assert "precision(average)" in printed
    assert "micro" in printed
    status, _, said = command("metrics", "--convention", "implict")
    assert status == 2
    assert "did you mean 'implicit'" in said
    _, printed, _ = command("metrics", "diversity")
    assert "train (similarity=train)" in printed


def test_finds_a_metric_by_its_other_names(command: Command) -> None:
    expected = command("metrics", "hit_rate")
    assert "also called" in expected[1]
    for name in ("hr", "HR@10", "hit-ratio", "hit_rate_10"):
        assert command("metrics", name) == expected
    status, printed, said = command("metrics", "r")
    assert (status, printed) == (2, "")
    assert said.endswith("did you mean 'recall' or 'r_precision'?\n")
