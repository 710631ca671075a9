"""sparse_eval itself: with Rankings and Relevance in hand, and from raw arrays."""

import sparse_eval as se

from ..case import CUT_OFFS, NAMES

OURS = (*NAMES, "cg", "dcg", "idcg", "f1", "arhr")


def make_rankings(lists):
    return se.Rankings.from_topk(lists.ids, user_rows=lists.users, shape=lists.validation.shape)


def whole_call(lists):
    """Score raw arrays; the time includes every check of the lists and of the matrix."""
    return columns(se.evaluate(make_rankings(lists), lists.validation, ["ndcg@10"]))


def columns(ev):
    return {name: ev.values(name) for name in ev}


def prepare(lists):
    data = make_rankings(lists), se.Relevance.from_csr(lists.validation)

    def several():
        cut_offs = ",".join(map(str, CUT_OFFS))
        return columns(se.evaluate(*data, [f"{name}@{{{cut_offs}}}" for name in OURS]))

    def diversity():
        # From the training matrix; the timed call includes the preparation of item data.
        return columns(se.evaluate(*data, ["diversity@10"], train=lists.train))

    def values(result):
        return {name: column[lists.users] for name, column in result.items()}

    return {
        "ndcg@10": (lambda: columns(se.evaluate(*data, ["ndcg@10"])), values),
        "ndcg@10, whole call": (lambda: whole_call(lists), values),
        "several metrics": (several, values),
        "diversity@10": (diversity, values),
    }
