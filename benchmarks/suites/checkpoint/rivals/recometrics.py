"""recometrics: every test user's metrics from the factors, in C++; it scores and ranks all items.

Only ndcg is requested. No noise is added to the scores; it would break ties and take longer.
"""

from recometrics import calc_reco_metrics


def prepare(case):
    sides = (case.train, case.validation, case.user_factors)
    train, validation, users = (side[case.users] for side in sides)

    def evaluate():
        return calc_reco_metrics(
            train,
            validation,
            users,
            case.item_factors,
            k=case.k,
            precision=False,
            average_precision=False,
            break_ties_with_noise=False,
            as_df=False,
            nthreads=case.threads,
        )["NDCG@K"]

    return {"calc_reco_metrics": (evaluate, lambda ndcg: {"ndcg_of_users": ndcg})}
