"""How often intervals of requests hold the truth, and tests find a difference that is none.

Each user has a chance of a hit, drawn from a beta distribution with mean 1/2 and the intra-class
correlation; each request is a hit by that chance. A second, equally good model has the same chances
and its own hits. Requests as people: each request is taken for a user.
"""

import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix
from suites.inference.probe import repeat, scaled

import sparse_eval as se

warnings.simplefilter("ignore", UserWarning)  # of lists without a hit

TRUTH, LEVEL = 0.5, 0.95
CORRELATIONS = (0.0, 0.1, 0.3, 0.6)
REQUESTS = (5, 40)
#: Users: repetitions.
USERS = {200: 1000, 2000: 300}
SEED = 0


class Case(NamedTuple):
    correlation: float
    n_requests: int
    n_users: int
    weighted: bool


def simulate(scale: float) -> dict[str, Any]:
    rows = []
    for n_users, times in USERS.items():
        for n_requests in REQUESTS:
            for correlation in CORRELATIONS:
                for weighted in (False, True):
                    case = Case(correlation, n_requests, n_users, weighted)
                    n = scaled(times, scale)
                    found = repeat(partial(measure, case), n)
                    shares = {name: sum(one[name] for one in found) / n for name in found[0]}
                    rows.append({**case._asdict(), "repetitions": n, **shares})
    return {"level": LEVEL, "rows": rows}


def measure(case: Case, number: int) -> dict[str, bool]:
    """Return whether intervals hold the truth, and a test finds a difference."""
    weighted = int(case.weighted)
    seed = [SEED, number, case.n_users, case.n_requests, round(10 * case.correlation), weighted]
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(case.n_users), case.n_requests)
    n = len(users)
    chances = np.full(case.n_users, TRUTH)
    if case.correlation:
        shape = TRUTH * (1 / case.correlation - 1)
        chances = rng.beta(shape, shape, case.n_users)
    weights = rng.lognormal(size=n) if case.weighted else None
    relevant = csr_matrix((np.ones(n), (np.arange(n), np.zeros(n, int))), (n, 2))
    lists = [np.where(rng.random(n) < chances[users], 0, 1)[:, None] for _ in range(2)]

    def evaluated(owners: Any, ids: Any) -> se.Evaluation:
        requests = se.Requests.from_csr(relevant, owners, weights=weights)
        rankings = se.Rankings.from_topk(ids, shape=(n, 2))
        return se.evaluate(rankings, requests, "hit_rate@1", num_threads=1)

    one, other = (evaluated(users, ids) for ids in lists)
    compared = se.compare({"one": one, "other": other}, correction="none").table
    return {
        "held": holds(one),
        "held_as_people": holds(evaluated(np.arange(n), lists[0])),
        "alarms": bool(compared["p"].item() < 1 - LEVEL),
    }


def holds(ev: se.Evaluation) -> bool:
    row = ev.summary().iloc[0]
    return bool(row["ci_low"] <= TRUTH <= row["ci_high"])
