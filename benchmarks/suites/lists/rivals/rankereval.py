"""rankereval: labels from a sparse matrix, rankings from an array of ids, one metric per call."""

from rankereval import NDCG, BinaryLabels, DenseRankings


def prepare(lists):
    # Rows are matched by their number, so labels must only include the users with a list.
    matrix = lists.validation[lists.users]

    def objects():
        return BinaryLabels.from_matrix(matrix), DenseRankings.from_ranked_indices(lists.ids)

    def ndcg(labels, rankings):
        return NDCG(10, log_base="2").score(labels, rankings)

    def values(result):
        return {"ndcg@10": result}

    in_hand = objects()
    return {
        "ndcg@10": (lambda: ndcg(*in_hand), values),
        "ndcg@10, whole call": (lambda: ndcg(*objects()), values),
    }
