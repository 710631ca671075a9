"""Public calls return the stored values on every machine, to the last bit."""

import json
import math
import re

import pytest
from command_calls import outcomes
from public_calls import GROUPS, NET, returned

#: The columns and places of numbers whose last bits SciPy or LAPACK computes.
OF_SCIPY = {
    "ci_low", "ci_high", "p", "p_corrected", "effect_low", "effect_high", "detectable", "error",
    "freedom",
    3, 4,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_public_calls_return_the_same_bits(group, request):
    if group == "gowalla":
        request.getfixturevalue("gowalla")  # skips if the data are missing
    expected = json.loads((NET / f"{group}.json").read_text())
    found = returned(group)
    different = [
        f"{call}: {path} is {here!r}, was {there!r}"
        for call in expected.keys() | found.keys()
        for path, here, there in differences(found.get(call), expected.get(call))
    ]
    first = "\n".join(sorted(different)[:40])
    assert not different, f"{len(different)} numbers differ:\n{first}"


@pytest.mark.long
def test_commands_print_the_same():
    expected = json.loads((NET / "commands.json").read_text())
    found = json.loads(json.dumps(outcomes()))
    assert found.keys() == expected.keys()
    for words, outcome in expected.items():
        there, here = (_with_numbers(one) for one in (outcome, found[words]))
        assert here == there, words


def _with_numbers(outcome):
    """Return an outcome whose numbers have as many digits as every version of SciPy gives."""
    text = json.dumps(outcome)
    return re.sub(r"-?\d+\.\d{6,}(e-?\d+)?", lambda match: f"{float(match[0]):.9g}", text)


def differences(found, expected, path=()):
    """Return where two values from JSON differ."""
    if isinstance(found, dict) and isinstance(expected, dict):
        pairs = [(key, found.get(key), expected.get(key)) for key in found.keys() | expected.keys()]
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = [(i, *pair) for i, pair in enumerate(zip(found, expected, strict=True))]
    else:
        is_same = found == expected or (found != found and expected != expected)
        if path and path[-1] in OF_SCIPY and isinstance(found, float) and not is_same:
            is_same = math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12)
        return [] if is_same else [("/".join(map(str, path)), found, expected)]
    return [one for key, here, there in pairs for one in differences(here, there, (*path, key))]


def test_differences_are_found():
    before = {"ndcg@5": [0.5, 3, "a", 0.25, math.nan], "rows": [{"mean": 0.5, "p": 1e-9}]}
    assert differences(before, before) == []
    after = {"ndcg@5": [0.5 + 1e-15, 3, "b", 0.25 + 1e-15, math.nan]}
    assert len(differences(after | {"rows": before["rows"]}, before)) == 2
    after = {"ndcg@5": [0.5, 3, "a", 0.25 + 1e-11, 0.0], "rows": [{"mean": 0.5, "p": 1e-9 + 1e-18}]}
    assert len(differences(after, before)) == 2
    assert differences({}, before)
