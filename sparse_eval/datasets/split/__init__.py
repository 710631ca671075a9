"""Splitting interactions into training and validation data, and maybe test data.

`random`, `leave_k_out` and `k_fold` draw pairs; `last_n`, `temporal` and `rolling` go by time;
`users` holds out whole users.

A split divides the distinct (user, item) pairs, so that a repeated interaction is never on both
sides. Without times the parts add up to the whole, explicit zeros included. With times, no event of
training is later than the cut, and no held-out event is earlier. If a pair has events on both
sides, the earlier ones are trained on, and the later ones are left out, because seen items are not
recommended again; `Holdout.left_out` counts them. Events without a date (`datasets.UNDATED`) are
before all others. The order of the rows has no influence.

At least one pair of each user stays in training: users with too few pairs keep all of them there,
and remain rows of all matrices. The exceptions are `temporal` and `rolling`, where only the cut
decides, and `users`, where the model gets some pairs of a held-out user after its training.

A random split orders the pairs of each user by a hash of seed, user code and item code. The
held-out pairs of a user therefore do not depend on other users.
"""

from ...core.messages import no_attribute
from .by_time import last_n, rolling, temporal
from .chance import k_fold, leave_k_out, random, users
from .holdout import Holdout, LeftOut, Unknown

__all__ = [
    "Holdout",
    "LeftOut",
    "Unknown",
    "k_fold",
    "last_n",
    "leave_k_out",
    "random",
    "rolling",
    "temporal",
    "users",
]


def __getattr__(name: str) -> object:
    instead = {"leave_one_out": "se.split.leave_k_out(interactions, n=1)"}
    raise no_attribute(f"module {__name__!r}", name, instead)
