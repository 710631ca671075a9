"""Results of three models for the tests of gates."""

import numpy as np
from scipy.sparse import csr_matrix

import sparse_eval as se

N = 300
RANKS = np.random.default_rng(0).integers(1, 11, (3, N))
USERS = np.array([f"u{number:03d}" for number in range(N)])


def result(ranks, users=USERS, train=None, metrics=("mrr@10", "coverage@10")):
    """Evaluate lists of ten items in which the one relevant item of each user has these ranks."""
    n = len(ranks)
    lists = np.tile(np.arange(1, 11), (n, 1))
    lists[np.arange(n), np.asarray(ranks) - 1] = 0
    held_out = csr_matrix((np.ones(n), (np.arange(n), np.zeros(n, int))), (n, 12))
    relevance = se.Relevance.from_csr(held_out, users=users, items=[f"i{i}" for i in range(12)])
    rankings = se.Rankings.from_topk(lists, users=users, items=relevance.items_index)
    return se.evaluate(rankings, relevance, list(metrics), train=train)


def rules(*tables, **settings):
    return {"rule": list(tables), **settings}


def not_worse(by="5%", **more):
    return {"metric": "mrr@10", "not_worse_by": by, **more}


A, B, C = (1 / ranks for ranks in RANKS)
EVS = [result(ranks) for ranks in RANKS]
