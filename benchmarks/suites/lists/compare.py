"""Print the differences between the values of two files as JSON, metric by metric.

    python compare.py REFERENCE OTHER

Only metrics that both have are compared. If the other file has a single number, it is a mean, and
is compared with the mean.
"""

import json
import sys

import numpy as np


def main(reference: str, other: str) -> None:
    with (
        np.load(reference, allow_pickle=False) as ours,
        np.load(other, allow_pickle=False) as theirs,
    ):
        shared = sorted(set(ours) & set(theirs))
        print(json.dumps({name: difference(ours[name], theirs[name]) for name in shared}))


def difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    if theirs.size == 1:
        ours = np.nanmean(ours, keepdims=True)
    if ours.shape != theirs.shape or (np.isnan(ours) != np.isnan(theirs)).any():
        return float("inf")
    return float(np.nanmax(np.abs(ours - theirs), initial=0.0))


if __name__ == "__main__":
    main(*sys.argv[1:])
