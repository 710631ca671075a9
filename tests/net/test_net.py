"""Public calls return what is stored beside this file, to the last bit."""

import json
import math

import pytest
from public_calls import GROUPS, NET, processor, returned


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_public_calls_return_the_same_bits(group):
    expected = json.loads((NET / f"{group}.json").read_text())
    exact = json.loads((NET / "processor.json").read_text()) == processor()
    found = returned(group)
    different = [
        f"{call}: {path} is {here!r}, was {there!r}"
        for call in expected.keys() | found.keys()
        for path, here, there in differences(found.get(call), expected.get(call), exact=exact)
    ]
    first = "\n".join(sorted(different)[:40])
    assert not different, f"{len(different)} numbers differ:\n{first}"


def differences(found, expected, path="", *, exact):
    """Return where two values from JSON differ."""
    if isinstance(found, dict) and isinstance(expected, dict):
        pairs = [(key, found.get(key), expected.get(key)) for key in found.keys() | expected.keys()]
    elif isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = [(i, *pair) for i, pair in enumerate(zip(found, expected, strict=True))]
    else:
        is_same = found == expected or (found != found and expected != expected)
        if not exact:
            numbers = isinstance(found, float) and isinstance(expected, float)
            is_same |= isinstance(found, str) and isinstance(expected, str)
            is_same |= numbers and math.isclose(found, expected, rel_tol=1e-9, abs_tol=1e-12)
        return [] if is_same else [(path, found, expected)]
    return [
        one
        for key, here, there in pairs
        for one in differences(here, there, f"{path}/{key}", exact=exact)
    ]


def test_differences_are_found():
    before = {"ndcg@5": [0.5, 3, "a"], "auc": [math.nan, "b"]}
    assert differences(before, before, exact=True) == []
    after = {"ndcg@5": [0.5000000001, 3, "c"], "auc": [math.nan, "b"]}
    assert len(differences(after, before, exact=True)) == 2
    assert len(differences(after, before, exact=False)) == 0
    assert differences({"ndcg@5": [0.6, 3, "a"]}, {"ndcg@5": [0.5, 3, "a"]}, exact=False)
    assert differences({}, before, exact=False)
