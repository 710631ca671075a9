"""The product of all users' factors and all items' factors, by block; the scores are discarded.

Nothing is ranked or left out: this is the minimum time of brute force. BLAS has all threads, and
every block is written to the same memory.
"""

import numpy as np

BLOCK = 2048


def prepare(case):
    scores = np.zeros((BLOCK, len(case.item_factors)), np.float32)
    factors = case.user_factors[case.users]

    def product():
        for start in range(0, len(factors), BLOCK):
            users = factors[start : start + BLOCK]
            np.matmul(users, case.item_factors.T, out=scores[: len(users)])

    return {"product": (product, lambda _: {})}
