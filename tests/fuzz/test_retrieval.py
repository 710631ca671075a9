"""Lists and ranks of adversarial factors are those of the definition, to the last bit."""

import numpy as np
import pytest
from retrieval_cases import DTYPES, KINDS, SCALES, SEEN, TILES, cut_into, make_case, make_factors

N_TRIES = 40

pytestmark = [pytest.mark.slow, pytest.mark.long]


def test_lists_and_ranks(tries):
    for random in tries:
        dtype = random.choice(DTYPES)
        kind = random.choice(sorted(KINDS))
        n_items = random.choice((random.randint(1, 12), random.randint(13, 300), 1100, 5000))
        shape = (random.randint(1, 6), n_items, random.choice((1, 2, 3, 8, 33, 64, 200, 513)))
        rng = np.random.default_rng(random.getrandbits(63))
        empty = random.choice((0.0, 0.0, 0.3))
        users, items = make_factors(rng, kind, shape, dtype, random.choice(SCALES[dtype]), empty)
        if random.random() < 0.1:
            users = users.astype(users.dtype.newbyteorder())
        k = random.choice((random.randint(1, 5), random.randint(1, n_items + 3)))
        case = make_case(rng, users, items, k, random.choice(SEEN), random.random() < 0.3)
        if not case.eligible.any():
            continue
        tiling = {name: random.choice(values) for name, values in TILES.items()}
        tiling = tiling if random.random() < 0.7 else {}
        print(tries.number, kind, shape, dtype.__name__, "k", k, tiling)  # noqa: T201 - if it fails
        with cut_into(tiling):
            case.check()
