"""Compare the values in two files, metric by metric."""

import numpy as np
from harness.values import difference


def compare(reference: str, other: str) -> dict[str, float]:
    """Return the largest difference of each metric that both have.

    If the other file has a single number, it is a mean, and is compared with the mean.
    """
    with (
        np.load(reference, allow_pickle=False) as ours,
        np.load(other, allow_pickle=False) as theirs,
    ):
        return {
            name: difference(
                (
                    np.nanmean(ours[name], keepdims=True) if theirs[name].size == 1 else ours[name]
                ).tolist(),
                theirs[name].tolist(),
            )
            for name in sorted(set(ours) & set(theirs))
        }
