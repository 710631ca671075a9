"""irspack: an evaluator of score matrices, with the candidates of each user."""

from irspack.evaluation import Evaluator

NAMES = {
    "ndcg@k": "ndcg",
    "precision@k": "precision",
    "recall@k": "recall",
    "hit_rate@k": "hit",
    "map@k": "map",
    "gini@k": "gini_index",
    "entropy@k": "entropy",
}


def answer(problem):
    evaluator = Evaluator(
        problem.relevant,
        cutoff=problem.k,
        per_user_recommendable_items=problem.candidates,
        masked_interactions=problem.train,
        n_threads=1,
    )
    scores = problem.user_factors @ problem.item_factors.T
    found = evaluator.get_score_from_score_matrix(scores)
    if not found["valid_user"]:
        return None
    validation = problem.relevant.multiply(problem.candidates)
    return {
        "values": {ours: float(found[theirs]) for ours, theirs in NAMES.items()},
        "given": {"validation": validation},
    }
