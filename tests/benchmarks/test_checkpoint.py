"""The benchmark's comparison of lists lets single precision pass, and nothing else."""

import json

import numpy as np
import pytest
from benchmark_calls import call
from scipy.sparse import csr_matrix, save_npz

N_USERS, N_ITEMS, K = 6, 40, 5


#: The right lists, and their mean: rank 4 for all but user 0, who gets the first ids.
LISTS = np.tile([38, 39, 37, 35, 34], (N_USERS, 1))
LISTS[0] = np.arange(K)
NDCG = (N_USERS - 1) / N_USERS / np.log2(5)


def but(user, *items):
    """Return the lists with another one for a user."""
    lists = LISTS.copy()
    lists[user] = items
    return {"ids": lists}


@pytest.fixture
def check(tmp_path):
    """Return what is said about the right lists, as ours, and about each of the answers.

    A user gives item i the score i + 1, but user 0 gives all of them 0. Item 39 has the score of
    item 38, and item 37 so nearly that single precision may not tell; item 33 has nearly that of
    34, but not as nearly. Everybody has seen item 36, and has item 35 held out.
    """
    users = np.ones((N_USERS, 2), np.float32)
    users[0] = 0
    items = np.zeros((N_ITEMS, 2), np.float32)
    items[:, 0] = np.arange(1, N_ITEMS + 1)
    items[39] = items[38]
    items[37] = (items[38, 0], -1e-6)
    items[33] = (items[34, 0], -1e-4)
    np.savez(tmp_path / "model.npz", user_factors=users, item_factors=items)
    for part, item in (("train", 36), ("validation", 35)):
        matrix = np.zeros((N_USERS, N_ITEMS), np.float32)
        matrix[:, item] = 1
        save_npz(tmp_path / f"data-{part}.npz", csr_matrix(matrix))
    case = {"model": "model", "data": "data", "k": K, "threads": 1}
    (tmp_path / "case.json").write_text(json.dumps(case))

    def check(*answers):
        paths = [tmp_path / f"{place}.npz" for place in range(len(answers) + 1)]
        for path, answer in zip(paths, ({"ids": LISTS}, *answers), strict=True):
            np.savez(path, **answer)
        return call("suites.checkpoint.check:check", tmp_path / "case.json", *paths)

    return check


def test_what_single_precision_allows(check):
    equal = but(1, 39, 38, 37, 35, 34)
    near = but(2, 37, 38, 39, 35, 34)
    zeros = but(0, 39, 3, 17, 30, 2)
    ours, *found = check({"ids": LISTS}, equal, near, zeros)
    assert ours["ndcg"] == pytest.approx(NDCG, abs=1e-15)
    assert all("wrong" not in report for report in (ours, *found))
    assert [report["lists_that_differ"] for report in (ours, *found)] == [0, 0, 1, 1, 1]


def test_what_it_does_not(check):
    wrong = [
        but(1, 38, 39, 37, 34, 35),  # two items in the wrong order
        but(1, 39, 38, 37, 35, 33),  # not 34, which is better by more than the bound
        but(1, 39, 38, 37, 36, 35),  # 36 has been seen
        but(1, 39, 39, 37, 35, 34),  # 39 twice
        but(1, 38, 39, 37, 35, -1),  # padding
        but(1, 38, 39, 37, 35, N_ITEMS),
        but(0, 36, 1, 2, 3, 4),  # seen, where all scores are equal
    ]
    _, *found = check(*wrong)
    assert [report.get("wrong", "").partition(",")[0] for report in found] == [
        *["the list of user 1"] * 6,
        "the list of user 0",
    ]


def test_a_mean_is_between_those_of_the_worst_and_the_best_ranks(check):
    # User 0 may have the held-out item at any rank, or not at all; the others have it at the 4th.
    lowest, highest = NDCG, NDCG + 1 / N_USERS
    values = (lowest, highest, lowest - 1e-7, highest + 1e-7)
    _, *found = check(*({"ndcg": np.array(value)} for value in values))
    assert found[0]["allowed"] == pytest.approx([lowest, highest], abs=1.1e-9)
    assert ["wrong" in report for report in found] == [False, False, True, True]
