"""TensorFlow Recommenders: one query for each relevant item of a user, among all candidates."""

import numpy as np
import tensorflow as tf
from tensorflow_recommenders.layers.factorized_top_k import BruteForce
from tensorflow_recommenders.metrics import FactorizedTopK

#: Whether items are found by their ids, or by their scores.
METRICS = {"recall@k": True, "recall(average=micro)@k": False}


def values(by_ids, case):
    """Return its top-k categorical accuracy: users are unit vectors, items have their scores."""
    users, items = np.array([(u, i) for u, row in enumerate(case.relevant) for i in row]).T
    candidates = np.array(case.scores, np.float32).T
    metric = FactorizedTopK(BruteForce(k=case.k).index(candidates), ks=[case.k])
    metric.update_state(
        tf.constant(np.eye(len(case.lists), dtype=np.float32)[users]),
        tf.constant(candidates[items]),
        true_candidate_ids=tf.constant(items.astype(np.int32)) if by_ids else None,
    )
    (value,) = metric.result()
    return float(value)
