"""Estimates of metrics from sampled candidates: their bias and variance.

The three recommenders are from Krichene and Rendle ("On Sampled Metrics for Item Recommendation",
KDD 2020). Each ranks the one relevant item of five users among 10,000 items. The ranks of A are
never very low and never near the top, B's ranks are mostly low, and C is at the top once. For each
user, 99 negatives are sampled, so the rank among the candidates is hypergeometric. The package's
estimate, averaged over the five users, is compared with the metric among all items, many times.
"""

import warnings
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.inputs.candidates import Candidates

#: The rank of each user's relevant item, among all items.
RANKS = {
    "A": (100, 100, 100, 100, 100),
    "B": (40, 40, 8437, 9266, 4482),
    "C": (212, 2, 743, 5342, 1548),
}
N_ITEMS, M = 10_000, 99
METRICS = ("auc", "mrr", "ndcg", "recall@10")
HOW = {"as sampled": None, "unbiased": "unbiased", "bias_variance": "bias_variance"}
SAMPLES = 2_000
SEED = 1


def first_item(values: Any) -> csr_matrix:
    """Return a matrix with a value for each user's item 0, the relevant one."""
    n = len(values)
    return csr_matrix((values, (np.arange(n), np.zeros(n, int))), shape=(n, N_ITEMS))


def whole(ranks: tuple[int, ...]) -> dict[str, float]:
    """Return the metrics among all items."""
    lists = se.Rankings.from_positions(first_item(ranks))
    return se.evaluate(lists, first_item(np.ones(len(ranks))), list(METRICS)).mean()


def estimates(ranks: tuple[int, ...], samples: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return the mean over the users of each sample, by kind of estimate and metric."""
    n = len(ranks) * samples
    above = np.tile(np.array(ranks) - 1, samples)
    places = rng.hypergeometric(above, N_ITEMS - 1 - above, M)
    # Item 0 is relevant, and the other candidates are 1 to 99 in any order.
    others = np.arange(M + 1)[None, :].repeat(n, axis=0)
    ids = np.where(others == places[:, None], 0, others + (others < places[:, None]))
    lists = se.Rankings.from_topk(ids, shape=(n, N_ITEMS))
    relevant = first_item(np.ones(n))
    indptr = np.arange(n + 1) * (M + 1)
    items = np.tile(np.arange(M + 1, dtype=np.int32), n)
    candidates = Candidates((n, N_ITEMS), indptr, items, f"1+{M}")
    found = {}
    for name, corrected in HOW.items():
        among = candidates.corrected(corrected) if corrected else candidates
        ev = se.evaluate(lists, relevant, list(METRICS), candidates=among)
        found[name] = {
            metric: ev.values(metric).reshape(samples, -1).mean(axis=1) for metric in METRICS
        }
    return found


def simulate(scale: float) -> dict[str, Any]:
    """Evaluate samples, drawn from one seed; their number is multiplied by the scale."""
    warnings.filterwarnings("ignore", "metrics among sampled candidates")
    samples = max(10, round(scale * SAMPLES))
    rng = np.random.default_rng(SEED)
    truth = {name: whole(ranks) for name, ranks in RANKS.items()}
    found = {name: estimates(ranks, samples, rng) for name, ranks in RANKS.items()}
    recommenders = {
        name: {
            "ranks": RANKS[name],
            "all_items": truth[name],
            "estimates": {
                how: {
                    metric: {"mean": values.mean(), "deviation": values.std(ddof=1)}
                    for metric, values in by_metric.items()
                }
                for how, by_metric in found[name].items()
            },
        }
        for name in RANKS
    }
    best = {
        how: {metric: best_found(truth, found, how, metric) for metric in METRICS} for how in HOW
    }
    return {
        "samples": samples,
        "n_items": N_ITEMS,
        "m": M,
        "recommenders": recommenders,
        "best_found": best,
    }


def best_found(truth: Any, found: Any, how: str, metric: str) -> float:
    """Return the share of samples in which the recommender that is best among all items wins."""
    best = max(RANKS, key=lambda name: truth[name][metric])
    others = [found[name][how][metric] for name in RANKS if name != best]
    return float(np.mean(found[best][how][metric] > np.maximum(*others)))
