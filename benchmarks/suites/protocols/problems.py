"""Small random models and user data for which every library must give our numbers.

Factors and biases are multiples of 2⁻¹⁰ below 1, so scores are exact in single precision too, for
any order of summation. No two scores of a user are equal, with or without biases, so there is only
one ranking. Every fifth catalogue is large enough for a hundred negatives. All draws come from one
seed.
"""

import random
from typing import Any

SEED = 17
N_PROBLEMS = 100
UNIT = 1024
LARGEST_GAIN = 4
HOURS = 24 * 20


def make(n_problems: int = N_PROBLEMS) -> list[dict[str, Any]]:
    """Return the problems; `Problem` describes their content."""
    draw = random.Random(SEED)  # noqa: S311 - not for secrets
    return [
        make_problem(draw, large=number % 5 == 4, binary=number % 2 == 0)
        for number in range(n_problems)
    ]


def make_problem(draw: random.Random, *, large: bool, binary: bool) -> dict[str, Any]:
    n_users, n_factors = draw.randint(4, 16), draw.randint(2, 4)
    n_items = draw.randint(150, 250) if large else draw.randint(20, 40)
    item_biases = vector(draw, n_items)
    item_factors = [vector(draw, n_factors) for _ in range(n_items)]
    user_factors = [make_user(draw, item_factors, item_biases) for _ in range(n_users)]
    seen, gains = [], []
    for user in range(n_users):
        items = draw.sample(range(n_items), draw.randint(0, 12))
        n_seen = 0 if draw.random() < 0.1 else draw.randint(0, len(items))
        seen.append(sorted(items[:n_seen]))
        gains.append(
            {item: 1 if binary else draw.randint(1, LARGEST_GAIN) for item in items[n_seen:]}
        )
        if user < 2 and not gains[user]:  # so that there are users to evaluate
            free = next(item for item in range(n_items) if item not in items)
            gains[user][free] = 1
    return {
        "k": draw.randint(1, 10),
        "user_factors": user_factors,
        "item_factors": item_factors,
        "user_biases": vector(draw, n_users),
        "item_biases": item_biases,
        "train": seen,
        "validation": [sorted(row.items()) for row in gains],
        "candidates": [
            sorted(draw.sample(range(n_items), draw.randint(0, n_items))) for _ in range(n_users)
        ],
        "events": make_events(draw, n_users, n_items),
    }


def vector(draw: random.Random, length: int) -> list[float]:
    return [draw.randint(1 - UNIT, UNIT - 1) / UNIT for _ in range(length)]


def make_user(
    draw: random.Random, item_factors: list[list[float]], item_biases: list[float]
) -> list[float]:
    """Return factors of a user for which all items have different scores."""
    while True:
        factors = vector(draw, len(item_factors[0]))
        scores = [sum(map(float.__mul__, factors, item)) for item in item_factors]
        biased = list(map(float.__add__, scores, item_biases))
        if len(set(scores)) == len(set(biased)) == len(scores):
            return factors


def make_events(draw: random.Random, n_users: int, n_items: int) -> list[tuple[int, int, int]]:
    """Return events (user, item, hour) in any order; pairs may occur several times."""
    n_items = min(n_items, 30)
    return [
        (draw.randrange(n_users), draw.randrange(n_items), draw.randrange(HOURS))
        for _ in range(draw.randint(8 * n_users, 18 * n_users))
    ]
