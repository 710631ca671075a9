"""Exact retrieval as its definition reads: the oracle of `test_retrieve`.

The score of a user and an item is the dot product of their stored factors, accumulated in float64
in the order of the factors; a list goes by score downward, then by item id upward. Shares no code
with the package: what both get wrong in the same way would go unseen.

There are two oracles: one in plain Python, and one for larger data that does the same additions
for all items at once, column by column (`test_retrieve` holds the one to the other).
"""

import numpy as np

#: Users whose scores the larger oracle holds at once.
_USERS_AT_ONCE = 16


def score(user, item):
    total = 0.0
    for of_user, of_item in zip(user, item, strict=True):
        total += of_user * of_item
    return total


def candidates(n_items, items, exclude, seen):
    """What may be recommended to a user, ids upward."""
    allowed = set(range(n_items)) if items is None else set(items)
    return sorted(allowed - set(exclude or ()) - set(seen))


def orders(users, items, allowed):
    """Each user's candidates, best first, and their scores, in plain Python."""
    vectors = items.astype(np.float64).tolist()
    for user, own in zip(users.astype(np.float64).tolist(), allowed, strict=True):
        scored = sorted((-score(user, vectors[item]), item) for item in own)
        ids = np.array([item for _, item in scored], np.int64)
        yield ids, np.array([score(user, vectors[item]) for item in ids], np.float64)


def orders_of_many(users, items, allowed):
    """The same for thousands of items."""
    columns = np.ascontiguousarray(items.T, np.float64)
    for first in range(0, len(users), _USERS_AT_ONCE):
        some = users[first : first + _USERS_AT_ONCE].astype(np.float64)
        scores = np.zeros((len(some), len(items)))
        for factor, column in enumerate(columns):
            scores += some[:, factor, None] * column
        for row, own in zip(scores, allowed[first : first + _USERS_AT_ONCE], strict=True):
            ids = np.array(own, np.int64)
            order = np.argsort(-row[ids], kind="stable")  # of equal scores the lower id is first
            yield ids[order], row[ids[order]]
