"""Random evaluations by any convention and any way are those of plain Python, to the last bit."""

import pytest
from ways import WAYS, small_blocks
from ways_cases import check_against_plain, make_case, same

import sparse_eval as se
from sparse_eval.metrics import CONVENTIONS

N_TRIES = 20

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.filterwarnings("ignore")]


def test_metrics_by_every_way(tries):
    for random in tries:
        case = make_case(
            random.getrandbits(63),
            kind=random.choice(("ranks", "gaps", "ties")),
            graded=random.random() < 0.5,
            n_users=random.choice((0, 0, 1, random.randint(10, 200))),
        )
        convention = random.choice(sorted(CONVENTIONS))
        way = random.choice(WAYS)
        case = case.accepted(convention)
        metrics = case.metrics(convention)
        options = {"convention": convention}
        print(tries.number, convention, way, len(case.ranked), "users")  # noqa: T201
        expected = se.evaluate(case.positions, case.validation, metrics, **options)
        check_against_plain(expected, case)
        with small_blocks():
            same(way(case, metrics, options), expected)
