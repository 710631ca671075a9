"""faiss: the flat inner product index, asked for more than k, as it cannot leave seen items out.

It returns a hundred more items for all users. Users whose lists are too short without their seen
items are searched again, with as many additional items as the busiest of them has seen.
"""

import faiss
import numpy as np

# From 100 results on, faiss collects them in a different way, and a few dozen more cost nothing.
MORE = 100
# Users at once: as many as faiss itself uses for one product. All at once is not faster.
BLOCK = 4096


def prepare(case):
    faiss.omp_set_num_threads(case.threads)
    index = faiss.IndexFlatIP(case.item_factors.shape[1])
    index.add(case.item_factors)
    entries = case.train.tocoo()
    n_items = case.train.shape[1]
    seen = np.sort(entries.row.astype(np.int64) * n_items + entries.col)
    n_seen = np.diff(case.train.indptr)

    def search():
        lists, complete = unseen(case.users, case.k + MORE)
        short = np.flatnonzero(~complete)
        if len(short):
            users = case.users[short]
            lists[short], _ = unseen(users, case.k + int(n_seen[users].max()))
        return lists

    def unseen(users, n_asked):
        """Return the first k unseen results, and which users have k of them."""
        lists = np.full((len(users), case.k), -1, dtype=np.int64)
        complete = np.zeros(len(users), dtype=bool)
        for start in range(0, len(users), BLOCK):
            block = slice(start, start + BLOCK)
            _, found = index.search(case.user_factors[users[block]], min(n_asked, n_items))
            keys = users[block, None] * n_items + found
            places = np.searchsorted(seen, keys)
            new = seen[np.minimum(places, len(seen) - 1)] != keys
            rank = np.cumsum(new, axis=1, dtype=np.int32)
            rows, columns = np.nonzero(new & (rank <= case.k))
            lists[start + rows, rank[rows, columns] - 1] = found[rows, columns]
            complete[block] = rank[:, -1] >= case.k
        return lists, complete

    return {"IndexFlatIP": (search, lambda ids: {"ids": ids})}
