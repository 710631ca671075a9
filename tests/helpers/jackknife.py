"""The delete-a-group jackknife as it is published, for numbers that plain Python computes.

F. M. T. A. Busing, E. Meijer and R. van der Leeden, "Delete-m Jackknife for Unequal m", Statistics
and Computing 9, 1999, pp. 3-8. doi:10.1023/A:1008800423698
"""

import math

import pandas as pd

N_GROUPS = 20

_WORD = 2**64


def group_of(label):
    """Return the group of a user: by splitmix64 of a number, by pandas' hash of text."""
    if isinstance(label, str):
        return int(pd.util.hash_array(pd.array([label], dtype=object).to_numpy())[0]) % N_GROUPS
    state = (label + 0x9E3779B97F4A7C15) % _WORD
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % _WORD
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) % _WORD
    return (state ^ (state >> 31)) % N_GROUPS


def replicates(number, groups):
    """Return a replicate of `number` for each group of users.

    Parameters
    ----------
    number : callable
        Takes the rows of some users.
    groups : sequence of int
        The group of each user that counts; every group has some.
    """
    everybody = number(range(len(groups)))
    pseudo, center, shares = _pseudovalues(number, groups)
    return [
        everybody + (value - center) * math.sqrt((N_GROUPS - 1) / (N_GROUPS * (h - 1)))
        for h, value in zip(shares, pseudo, strict=True)
    ]


def standard_error(number, groups):
    """Return the published standard error of `number`."""
    pseudo, center, shares = _pseudovalues(number, groups)
    terms = ((value - center) ** 2 / (h - 1) for h, value in zip(shares, pseudo, strict=True))
    return math.sqrt(math.fsum(terms) / N_GROUPS)


def _pseudovalues(number, groups):
    n_users = len(groups)
    everybody = number(range(n_users))
    shares, pseudo, center = [], [], N_GROUPS * everybody
    for group in range(N_GROUPS):
        without = number([row for row in range(n_users) if groups[row] != group])
        h = n_users / sum(1 for one in groups if one == group)
        shares.append(h)
        pseudo.append(h * everybody - (h - 1) * without)
        center -= (1 - 1 / h) * without
    return pseudo, center, shares
