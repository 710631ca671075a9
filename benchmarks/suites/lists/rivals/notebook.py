"""A typical notebook's code with pandas and scipy: masks, a matrix of matches, frames of lists.

Every list becomes a row of a prediction matrix whose values are positions. Items that are also in
the validation matrix are found by subtracting masks. Then the positions are collected per user and
converted to DCG, and an ideal DCG is computed from the number of relevant items.
"""

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix, diags

K = 10


def prepare(lists):
    entries = lists.validation.tocoo()
    clicks = pd.DataFrame({"user": entries.row, "item": entries.col, "clicked": entries.data})

    def values(result):
        return {"ndcg@10": result.set_index("user")["ndcg"].reindex(lists.users).to_numpy()}

    return {
        "ndcg@10": (lambda: ndcg(lists, clicks), values),
        "ndcg@10, whole call": (lambda: ndcg(lists, clicks), values),  # no objects to make first
        "diversity@10": (lambda: diversity(lists), lambda result: {"diversity@10": result}),
    }


def ndcg(lists, clicks):
    predictions = _prediction_matrix(lists)
    pairs = _relevant_positions(predictions, lists.validation)
    scores = _dcg(pairs).merge(_idcg(clicks), on="user", how="left")
    scores["ndcg"] = scores["dcg"] / scores["idcg"]
    return scores


def diversity(lists):
    """Score with the cosines of all pairs of items that occur together, as one matrix."""
    norms = np.sqrt(np.maximum(np.asarray(lists.train.sum(axis=0)).ravel(), 1.0))
    unit = csr_matrix(lists.train @ diags(1.0 / norms))
    cosines = csr_matrix(unit.T @ unit)
    first, second = np.triu_indices(lists.ids.shape[1], 1)
    pairs = cosines[lists.ids[:, first].ravel(), lists.ids[:, second].ravel()]
    return 1.0 - np.asarray(pairs).reshape(len(lists.ids), -1).mean(axis=1)


def _prediction_matrix(lists):
    frame = pd.DataFrame({"user": lists.users, "item": list(lists.ids)})
    frame["position"] = [np.arange(1, K + 1)] * len(frame)
    items = frame[["user", "item"]].explode("item", ignore_index=True)
    positions = frame[["position"]].explode("position", ignore_index=True)
    frame = pd.concat([items, positions], axis=1).astype(int)
    return csr_matrix((frame["position"], (frame["user"], frame["item"])))


def _relevant_positions(predictions, validation):
    rows, columns = np.minimum(predictions.shape, validation.shape)
    predictions, validation = predictions[:rows, :columns], validation[:rows, :columns]
    predicted, relevant = _mask(predictions), _mask(validation)

    predicted.data += 1  # 2 - 1: a match; 2 - 0: a miss; 0 - 1: never recommended
    matches = predicted - relevant
    matches.data[matches.data < 0] = 0
    matches.eliminate_zeros()
    matches.data[matches.data == 2] = -1

    signed = matches.multiply(predictions).tocsr()
    pairs = pd.DataFrame(
        {
            "user": np.repeat(np.arange(signed.shape[0]), np.diff(signed.indptr)),
            "position": signed.data,
        }
    )
    pairs["listed_at"] = pairs["position"].abs()
    pairs["position"] *= pairs["position"] >= 0  # irrelevant: position 0
    return pairs


def _mask(matrix):
    mask = matrix.copy()
    mask.data = np.ones(mask.nnz, dtype=int)
    return mask


def _dcg(pairs):
    ordered = pairs.sort_values(["user", "listed_at"])
    frame = ordered.groupby("user")["position"].agg(list).reset_index()
    positions = np.vstack(frame["position"].to_numpy())
    frame["dcg"] = _discounted(positions > 0, positions + 1)
    return frame


def _idcg(clicks):
    first = clicks.loc[clicks["clicked"] > 0].groupby("user", as_index=False).head(K)
    frame = first[["user", "item"]].groupby("user", as_index=False).count()
    ranks = np.arange(1, K + 1)
    relevant = ranks[None, :] <= frame["item"].to_numpy()[:, None]
    frame["idcg"] = _discounted(relevant, np.broadcast_to(ranks + 1, relevant.shape))
    return frame


def _discounted(gains, shifted):
    discounts = np.log2(shifted)
    return np.divide(gains, discounts, out=np.zeros(gains.shape), where=discounts > 0).sum(axis=1)
