"""Evaluations of three models on the same users, optionally with odd labels."""

from functools import cache

import numpy as np
from matplotlib.figure import Figure
from scipy.sparse import csr_matrix

import sparse_eval as se

METRICS = ["ndcg@{5,10}", "recall@{5,10}", "mrr@10", "coverage@10", "recall(average=micro)@10"]

#: Labels that a page must show as text.
ODD = [
    "<script>alert(1)</script>",
    "\"quoted\" & 'single'",
    "two\nlines",
    "שלום עולם",
    "long " * 2000,
    "$x^2$",
    "_hidden",
    " ",
    "</svg><img src=x onerror=alert(2)>",
    "{{ 7 * 7 }}",
]


@cache
def evaluate(seed, skill, odd=False, whole=True):
    """Evaluate random lists of 240 users and 60 items; more skill makes them better."""
    n_users, n_items = 240, 60
    drawn = np.random.default_rng(0)
    seen = drawn.random((n_users, n_items)) < 0.1 * np.linspace(0.3, 2, n_users)[:, None]
    held_out = (drawn.random((n_users, n_items)) < 0.06) & ~seen
    scores = np.random.default_rng(seed).random((n_users, n_items)) + skill * held_out
    ids = np.argsort(-np.where(seen, -1, scores), axis=1)[:, :10]
    users = [*ODD, *(f"u{n}" for n in range(n_users - len(ODD)))] if odd else None
    items = [*ODD, *(f"i{n}" for n in range(n_items - len(ODD)))] if odd else None
    relevance = se.Relevance.from_csr(csr_matrix(held_out.astype(float)), users=users, items=items)
    lists = se.Rankings.from_topk(ids, shape=(n_users, n_items))
    if not whole:
        positions = lists.to_positions().multiply(held_out).tocsr()
        positions.eliminate_zeros()
        lists = se.Rankings.from_positions(positions)
    train = csr_matrix(seen.astype(float))
    metrics = METRICS if whole else METRICS[:3]  # coverage needs whole lists
    return se.evaluate(lists, relevance, metrics, train=train)


def three(odd=False):
    """Return evaluations of a good, a fair and a poor model."""
    names = ODD[:3] if odd else ["good", "fair", "poor"]
    skills = (0.7, 0.3, 0.28)
    return {
        name: evaluate(seed, skill, odd)
        for seed, (name, skill) in enumerate(zip(names, skills, strict=True), start=1)
    }


def draw_nothing(patch):
    """Leave charts empty, for tests that do not look at them: drawing takes most of the time."""
    chart = b'<svg xmlns="http://www.w3.org/2000/svg"/>'
    patch.setattr(Figure, "savefig", lambda _, file, **_options: file.write(chart))
