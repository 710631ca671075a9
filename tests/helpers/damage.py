"""Damaged files: what a full disk, a broken transfer or an attacker leaves of a good one."""

import gzip
import io
import re
import warnings
import zipfile
import zlib

#: What parsers stumble over.
WORDS = (
    b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b"\n\n", b"\t", b",", b";", b" ", b'"',
    b"'", b"\\", b"{", b"}", b"[", b"]", b":", b"-1", b"0", b"1e400", b"-1e400", b"nan", b"inf",
    b"-0.0", b"1.5", b"9223372036854775807", b"9223372036854775808", b"-9223372036854775809",
    b"99999999999999999999999999", b"4294967296", b"2147483648", b"true", b"null", b"None",
    b"\xed\xa0\x80", b"\xc3", b"../", b"%s%n", b"=1+1", b"(" * 500, b"[" * 5000, b"9" * 5000,
)  # fmt: skip

#: Numbers that a binary format may hold where a size or a position is expected.
EXTREMES = tuple(
    value.to_bytes(size, "little", signed=value < 0)
    for size in (1, 2, 4, 8)
    for value in (0, -1, 1, 2 ** (8 * size - 1) - 1, -(2 ** (8 * size - 1)))
)

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")


def _place(random, content):
    early = random.random() < 0.4  # where headers are
    return random.randrange(min(len(content), 200) if early else len(content))


def _flip(random, content):
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 1, 2, 8))):
        changed[_place(random, content)] ^= random.choice((1 << random.randrange(8), 255))
    return bytes(changed)


def _edit(random, content):
    """Replace a part, which may be empty or all the rest, by something else or nothing."""
    start = random.choice((_place(random, content), len(content)))
    end = start + random.choice((0, 0, 1, 2, 8, 64, len(content)))
    part = content[start : start + random.choice((1, 16, 200))] or content[-20:]
    new = (b"", random.choice(WORDS), random.choice(EXTREMES), part * random.choice((2, 3, 50)))
    return content[:start] + random.choice(new) + content[end:]


def _renumber(random, content):
    found = list(_NUMBER.finditer(content))
    if not found:
        return _flip(random, content)
    one = random.choice(found)
    return content[: one.start()] + random.choice(WORDS) + content[one.end() :]


DAMAGES = (_flip, _edit, _edit, _renumber)


def damaged(random, content):
    """Return a file's content after one to three damages, inside of an archive half of the time."""
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        if not content:
            return random.choice(WORDS)
        if content.startswith(b"PK\x03\x04") and random.random() < 0.6:
            content = _in_archive(random, content)
        elif content.startswith(b"\x1f\x8b") and random.random() < 0.6:
            content = _in_gzip(random, content)
        else:
            content = random.choice(DAMAGES)(random, content)
    return content


def _in_gzip(random, content):
    try:
        inner = gzip.decompress(content)
    except (OSError, EOFError, zlib.error):
        return _flip(random, content)
    return gzip.compress(random.choice(DAMAGES)(random, inner or b"\n"))


def _in_archive(random, content):
    """Damage one member, or its name, and write an archive whose check sums are right."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [[name, archive.read(name)] for name in archive.namelist()]
        one = random.choice(members)
    except Exception:  # noqa: BLE001 - damaged before, in ways that zipfile answers as it likes
        return _flip(random, content)
    kind = random.choice(("name", "gone", "twice", "other", *["damage"] * 4))
    if kind == "name":
        one[0] = random.choice(("../up.npy", "/etc/x.npy", "a/../../b", "\\", "x" * 300, "data"))
    elif kind == "gone":
        members.remove(one)
    elif kind == "twice":
        members.append([*one])
    elif kind == "other":
        one[1] = random.choice(members)[1]
    else:
        one[1] = random.choice(DAMAGES)(random, one[1] or b"\0")
    stream = io.BytesIO()
    packed = random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", packed) as archive:
        warnings.simplefilter("ignore")  # of two members with one name
        for name, inner in members:
            archive.writestr(name, inner)
    return stream.getvalue()
