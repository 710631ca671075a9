"""The page about trec_eval: its names are read as the page says, and none of them is missing."""

import re
from pathlib import Path

from sparse_eval.metrics import convention_named, parse

PAGE = Path(__file__).parents[2] / "docs" / "trec_eval.md"

#: trec_eval 9's `all_trec`, as pytrec_eval lists it.
ALL_TREC = {
    "11pt_avg", "G", "P", "Rndcg", "Rprec", "Rprec_mult", "binG", "bpref", "gm_bpref", "gm_map",
    "infAP", "iprec_at_recall", "map", "map_cut", "ndcg", "ndcg_cut", "ndcg_rel",
    "num_nonrel_judged_ret", "num_q", "num_rel", "num_rel_ret", "num_ret", "recall", "recip_rank",
    "relative_P", "relstring", "runid", "set_F", "set_P", "set_map", "set_recall",
    "set_relative_P", "success", "utility",
}  # fmt: skip


def rows():
    """Return what is here for each name of trec_eval; nothing for what is not a metric here."""
    found = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [re.findall("`([^`]+)`", cell) for cell in line.split("|")[1:3]]
        if len(cells) == 2 and cells[0] and not cells[0][0].startswith("-"):
            theirs, ours = cells
            found |= dict(zip(theirs, [*ours, *[""] * len(theirs)], strict=False))
    return found


def test_no_measure_is_missing():
    names = {re.sub(r"_[0-9.]+$", "", name) for name in rows()}
    assert names >= ALL_TREC
    assert names - ALL_TREC == {"rbp", "unj", "rbp_resid"}


def test_names_are_read_as_the_page_says():
    rules = convention_named("trec_eval")
    read = 0
    for theirs, ours in rows().items():
        if not ours or ours.startswith("ev.") or theirs.startswith("unj"):
            continue
        (metric,) = parse(theirs, rules.options)
        assert str(metric) == ours
        rules.check(metric)
        read += 1
    assert read == 28
