"""Small random cases on which every library must give the number that we give.

Half of them have a score for every item, often with many ties. In a quarter, all lists reach the
cut-off, and in a quarter, lists are short or missing. All draws come from one seed.
"""

import random
from typing import Any

SEED = 20
N_CASES = 1200
KINDS = ("short", "scores", "full", "scores")
LARGEST_GAIN = 4


def make(n_cases: int = N_CASES) -> list[dict[str, Any]]:
    """Return the cases. A user has a list, stored gains (zeros too) and a history in `train`."""
    draw = random.Random(SEED)  # noqa: S311 - not for secrets
    return [
        make_case(draw, KINDS[number % len(KINDS)], binary=number // len(KINDS) % 2 == 0)
        for number in range(n_cases)
    ]


def make_case(draw: random.Random, kind: str, *, binary: bool) -> dict[str, Any]:
    n_users, n_items, k = draw.randint(1, 8), draw.randint(3, 30), draw.randint(1, 10)
    if kind != "short":
        k = min(k, n_items)
    depth = draw.randint(k, max(k, min(2 * k, n_items)))
    scores = None
    if kind == "scores":
        levels = draw.choice((2, 4, 10 * n_items, 10 * n_items))
        scores = [make_scores(draw, n_items, levels) for _ in range(n_users)]
        lists = [sorted(range(n_items), key=lambda item: (-row[item], item)) for row in scores]
    else:
        lists = [
            draw.sample(range(n_items), list_length(draw, kind, min(depth, n_items)))
            for _ in range(n_users)
        ]
    # Every other case has none of the users that libraries treat most differently.
    careful = draw.random() < 0.5
    validation = [make_gains(draw, n_items, binary, empty=not careful) for _ in range(n_users)]
    if careful and kind == "short":
        lists = [row or [draw.randrange(n_items)] for row in lists]
    # At least one user has a hit in the list: without hits, there is nothing to evaluate.
    user = draw.randrange(n_users)
    if not lists[user]:
        lists[user] = [draw.randrange(n_items)]
    validation[user].setdefault(draw.choice(lists[user]), 1)
    if not any(validation[user].values()):
        validation[user][lists[user][0]] = 1
    return {
        "kind": kind,
        "k": k,
        "n_items": n_items,
        "lists": lists,
        "validation": [sorted(row.items()) for row in validation],
        "train": make_train(draw, n_items, lists, validation),
        "scores": scores,
    }


def list_length(draw: random.Random, kind: str, depth: int) -> int:
    if kind == "full":
        return depth
    return 0 if draw.random() < 0.2 else draw.randint(0, depth)


def make_scores(draw: random.Random, n_items: int, levels: int) -> list[int]:
    """Return positive scores, all different if there are many levels."""
    if levels > n_items:
        return draw.sample(range(1, levels + 1), n_items)
    return [draw.randint(1, levels) for _ in range(n_items)]


def make_gains(draw: random.Random, n_items: int, binary: bool, *, empty: bool) -> dict[int, int]:
    """Return the stored gains of a user by item, including explicit zeros."""
    n_relevant = 0 if empty and draw.random() < 0.2 else draw.randint(1, max(1, n_items // 3))
    n_zeros = draw.choice((0, 0, 1, 2))
    items = draw.sample(range(n_items), min(n_relevant + n_zeros, n_items))
    largest = 1 if binary else LARGEST_GAIN
    return {
        item: draw.randint(1, largest) if place < n_relevant else 0
        for place, item in enumerate(items)
    }


def make_train(
    draw: random.Random, n_items: int, lists: list[list[int]], validation: list[dict[int, int]]
) -> list[list[int]]:
    """Return items that a user has seen, none of them in the user's list or validation."""
    allowed = [
        [item for item in range(n_items) if item not in row and item not in gains]
        for row, gains in zip(lists, validation, strict=True)
    ]
    train = [draw.sample(items, draw.randint(0, len(items))) for items in allowed]
    if draw.random() < 0.6:
        for item in range(n_items):  # every item is in train, if possible
            takers = [user for user, items in enumerate(allowed) if item in items]
            if takers and not any(item in row for row in train):
                train[draw.choice(takers)].append(item)
    return [sorted(row) for row in train]
