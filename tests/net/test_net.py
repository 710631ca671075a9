"""Public calls return what is stored beside this file, to the last bit."""

import json

import pytest
from public_calls import GROUPS, NET, processor, returned


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_public_calls_return_the_same_bits(group):
    expected, found = flat(json.loads((NET / f"{group}.json").read_text())), flat(returned(group))
    exact = json.loads((NET / "processor.json").read_text()) == processor()
    different = [
        f"{path} is {found.get(path)!r}, was {expected.get(path)!r}"
        for path in sorted(expected.keys() | found.keys())
        if not is_same(found.get(path), expected.get(path), exact=exact)
    ]
    first = "\n".join(different[:40])
    assert not different, f"{len(different)} numbers differ:\n{first}"


def flat(value, path=""):
    """Return the numbers and texts in JSON by their paths."""
    if not isinstance(value, dict | list):
        return {path: value}
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    parts = (flat(inner, f"{path}/{key}") for key, inner in pairs)
    return {place: one for part in parts for place, one in part.items()}


def is_same(found, expected, *, exact):
    if exact:
        return found == expected or (found != found and expected != expected)
    are_digests = isinstance(found, str) and isinstance(expected, str)
    return are_digests or found == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)
