"""scikit-learn: dense matrices of gains and scores, one user at a time."""

from functools import partial

from sklearn import metrics


def matrices(case):
    return case.matrix(case.stored).toarray(), case.matrix(case.run()).toarray()


def graded(metric, case, *, cut=False):
    options = {"k": case.k} if cut else {}
    pairs = zip(*matrices(case), strict=True)
    return [float(metric([gains], [scores], **options)) for gains, scores in pairs]


def binary(metric, case):
    pairs = zip(*matrices(case), strict=True)
    return [float(metric((gains > 0) * 1, scores)) for gains, scores in pairs]


def fbeta(beta, case):
    listed = case.matrix(case.first_k).toarray()
    pairs = zip(matrices(case)[0] > 0, listed, strict=True)
    score = partial(metrics.fbeta_score, beta=beta, zero_division=0)
    return [float(score(true, shown)) for true, shown in pairs]


def average_precision(case):
    score = metrics.label_ranking_average_precision_score
    return binary(lambda true, scores: score([true], [scores]), case)


FUNCTIONS = {
    "dcg": partial(graded, metrics.dcg_score),
    "dcg@k": partial(graded, metrics.dcg_score, cut=True),
    "ndcg": partial(graded, metrics.ndcg_score),
    "ndcg@k": partial(graded, metrics.ndcg_score, cut=True),
    "map": average_precision,
    "pr_auc": partial(binary, metrics.average_precision_score),
    "auc": partial(binary, metrics.roc_auc_score),
    "f1@k": partial(fbeta, 1),
    "f1(beta=0.5)@k": partial(fbeta, 0.5),
    "f1(beta=2)@k": partial(fbeta, 2),
}
