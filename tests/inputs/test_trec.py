"""TREC runs and judgements: reading, writing, and reading back what was written."""

import gzip

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises
from scipy import sparse

from sparse_eval import Rankings, Relevance, trec
from sparse_eval.errors import InvalidDataError, InvalidFileError
from sparse_eval.inputs.paths import PathKind, kind_of

RUN = "u2 Q0 milk 1 0.5 als\nu1 Q0 eggs 1 2 als\nu2 Q0 eggs 2 0.75 als\nu2 Q0 9 3 -1e1 als\n"
QRELS = "u2 0 milk 2\nu1 0 eggs 0\nu2 0 9 0.5\nu2 1 eggs -2\n"
JUDGED = {("u2", "milk"): 2.0, ("u1", "eggs"): 0.0, ("u2", "9"): 0.5}

#: What a label may hold: anything but white space and what cannot be in, or start, a file.
TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff").filter(
        lambda character: not character.isspace()
    ),
    min_size=1,
    max_size=4,
)
USERS = TEXT.filter(lambda text: not text.startswith("#"))


def lists(rankings):
    """Return the list of each user, by label."""
    return rankings.to_frame().groupby("user")["item"].agg(list).to_dict()


def judgements(relevance):
    """Return the gain of each pair, by label."""
    users = np.repeat(relevance.users.to_numpy(), np.diff(relevance.indptr))
    pairs = zip(users, relevance.items_index[relevance.items], strict=True)
    return dict(zip(pairs, relevance.gains.tolist(), strict=True))


# ------------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("a.run", lambda text: text.replace(" ", "\t")),
        ("c.run", lambda text: text.replace("\n", "\r\n")),
        ("d.run", lambda text: "\ufeff" + text.rstrip("\n")),
        ("e.run", lambda text: "\n" + text.replace("\n", "\n \n\n")),
        ("f.run.gz", lambda text: gzip.compress(text.encode())),
    ],
)
def test_reads_any_white_space_line_ends_and_compression(write, name, change):
    found = lists(trec.read_run(write(name, change(RUN))))
    assert found == {"u1": ["eggs"], "u2": ["eggs", "milk", "9"]}  # by score, whatever the ranks
    assert judgements(trec.read_qrels(write(name, change(QRELS)))) == JUDGED


def test_orders_equal_scores_by_id(write):
    # The order of bytes, as trec_eval compares: "10" before "9", and "Z" before "a" before "é".
    ids = ["9", "10", "é", "a", "Z", "\U0001f600", "\uffff"]
    path = write("run", "".join(f"u Q0 {item} 1 0.5 tag\n" for item in ids))
    ascending = ["10", "9", "Z", "a", "é", "\uffff", "\U0001f600"]
    assert lists(trec.read_run(path)) == {"u": ascending}
    assert lists(trec.read_run(path, ties="item_descending")) == {"u": ascending[::-1]}
    average = trec.read_run(path, ties="average")
    assert (average.positions.tolist(), average.last_positions.tolist()) == ([1] * 7, [7] * 7)
    with raises(InvalidDataError, argument="ties"):
        trec.read_run(path.with_name("not read at all"), ties="score")


def test_negative_gains_are_no_judgements(write):
    path = write("qrels", QRELS)
    relevance = trec.read_qrels(path)
    assert judgements(relevance) == JUDGED
    assert relevance.n_relevant.tolist() == [0, 2]
    # A user who has nothing else is among the judged ones, and counts 0 by trec_eval's convention.
    more = trec.read_qrels(write("more", QRELS + "u3 0 milk -1\nu3 0 eggs -2\n"))
    assert judgements(more) == JUDGED | {("u3", "milk"): 0, ("u3", "eggs"): 0}
    assert judgements(trec.read_qrels(path, threshold=1)) == JUDGED | {("u2", "9"): 0.0}
    with raises(InvalidDataError):
        trec.read_qrels(path, threshold=3)


def test_skips_comments_and_what_follows_the_sixth_field(write):
    plain = lists(trec.read_run(write("plain", RUN)))
    longer = RUN.replace(" als\n", " als of May, 64 factors\n")
    commented = f"# by ALS\n#\n{longer}  # u2 Q0 milk\n#end"
    for text in (longer, commented):
        path = write("a.run", text)
        assert lists(trec.read_run(path)) == plain
        assert kind_of(path) is PathKind.RUN
    judged = write("a.qrels", f"# judged in May\n{QRELS}#\n# u2 0 milk many\n")
    assert judgements(trec.read_qrels(judged)) == JUDGED
    assert kind_of(judged) is PathKind.QRELS


@pytest.mark.parametrize(
    ("read", "text", "line"),
    [
        (trec.read_run, RUN, "u Q0 i 1 0.5"),
        (trec.read_run, RUN, "u Q0 i 1 high tag"),
        (trec.read_run, RUN, "u Q0 i 1 1e999 tag"),
        (trec.read_run, RUN, "u Q0 i 1 1_0 tag"),
        (trec.read_run, RUN, "# Q0 i 1 0.5 tag"),
        (trec.read_run, RUN, " #u Q0 i 1 0.5 my tag"),
        (trec.read_qrels, QRELS, "u2 i 1"),
        (trec.read_qrels, QRELS, "u2 0 i 1 1"),
        (trec.read_qrels, QRELS, "u2 0 i inf"),
        (trec.read_qrels, QRELS, "# judged by 3"),
    ],
)
def test_refuses_malformed_lines(write, read, text, line):
    with raises(InvalidFileError, line=6):
        read(write("a", text + "\n" + line + "\n" + text.replace("u", "v")))


def test_names_a_repeated_pair(write):
    with raises(InvalidFileError, user="z"):
        trec.read_qrels(write("qrels", "z 0 y 1\na 0 b 1\nz 0 y 1"))
    with raises(InvalidFileError, user="u2"):
        trec.read_run(write("run", RUN + "\nu2 Q0 milk 9 9 tag\n"))


@pytest.mark.parametrize("read", [trec.read_run, trec.read_qrels])
def test_refuses_unreadable_files(write, read, tmp_path):
    paths = [write("blank", " \n\t\n"), write("comments", "# none\n\n#\n")]
    for path in (*paths, tmp_path, str(tmp_path / "nothing")):
        with raises(InvalidFileError):
            read(path)
    with raises(InvalidFileError):
        read(write("latin", b"u 0 i 1\nu 0 \xff 1\n"))


# ------------------------------------------------------------------------------- writing


LISTS = st.dictionaries(
    USERS, st.lists(TEXT, min_size=1, max_size=6, unique=True), min_size=1, max_size=5
)


@given(LISTS, st.sampled_from(["a.run", "a.run.gz"]))
def test_reads_back_the_lists_it_wrote(tmp_path_factory, expected, name):
    rows = [(user, item, rank) for user in expected for rank, item in enumerate(expected[user], 1)]
    frame = pd.DataFrame(rows, columns=["user", "item", "rank"])
    path = tmp_path_factory.mktemp("run") / name
    rankings = Rankings.from_frame(frame, rank="rank")
    trec.write_run(rankings, path)
    for ties in ("item", "item_descending"):  # no scores are equal
        back = trec.read_run(path, ties=ties)
        assert lists(back) == expected
        assert back.users.equals(rankings.users)
        assert back.items_index.equals(rankings.items_index)


@given(
    st.dictionaries(
        st.tuples(USERS, TEXT),
        st.one_of(st.integers(0, 5).map(float), st.floats(0, 1.7e308)),
        min_size=1,
        max_size=12,
    )
)
def test_reads_back_the_gains_it_wrote(tmp_path_factory, expected):
    rows = [(user, item, gain) for (user, item), gain in expected.items()]
    relevance = Relevance.from_frame(pd.DataFrame(rows, columns=["user", "item", "g"]), gain="g")
    path = tmp_path_factory.mktemp("qrels") / "qrels"
    trec.write_qrels(relevance, path)
    back = trec.read_qrels(path)
    assert judgements(back) == expected
    assert back.users.equals(relevance.users)
    assert back.gains.tobytes() == (relevance.gains + 0.0).tobytes()
    assert back.binary == relevance.binary


def test_equal_content_gives_equal_compressed_files(tmp_path):
    rankings = Rankings.from_topk([[4, 2]])
    for name in ("a.run.GZ", "b.run.gz"):
        trec.write_run(rankings, tmp_path / name)
    assert (tmp_path / "a.run.GZ").read_bytes() == (tmp_path / "b.run.gz").read_bytes()


def test_refuses_what_a_run_or_judgements_cannot_hold(tmp_path):
    path = tmp_path / "run"
    path.write_text("as it was")
    held_out = sparse.csr_matrix([[0, 1, 2], [1, 0, 3]])
    for lists_, user in (
        (Rankings.from_positions(held_out), 1),
        (Rankings.from_topk([[5, -1, 6]]), 0),
        (Rankings.from_scores([[1.0, 1.0]], ties="average"), None),
        (Rankings.from_topk(np.empty((2, 0), int)), None),
    ):
        with raises(InvalidDataError, user=user):
            trec.write_run(lists_, path)
    with raises(InvalidDataError):
        trec.write_qrels(Relevance.from_csr(sparse.csr_matrix((2, 3))), path)
    assert path.read_text() == "as it was"


@pytest.mark.parametrize("label", ["", " ", "a b", "a\tb", "\r", "a\0", "\ufeffa", "\u2028"])
def test_refuses_labels_that_a_field_cannot_hold(tmp_path, label):
    for users, items in ((["u", label], ["i", "j"]), (["u", "v"], ["i", label])):
        relevance = Relevance.from_csr(sparse.csr_matrix(np.eye(2)), users=users, items=items)
        with raises(InvalidDataError):
            trec.write_qrels(relevance, tmp_path / "qrels")
    with raises(InvalidDataError):
        trec.write_run(Rankings.from_topk([[1]]), tmp_path / "run", tag=label)
    assert not list(tmp_path.iterdir())


def test_only_a_user_could_be_a_comment(tmp_path):
    """And only labels that are written have to fit."""
    matrix = sparse.csr_matrix([[0, 0], [0, 1]])
    with raises(InvalidDataError):
        trec.write_qrels(Relevance.from_csr(matrix, users=["u", "#1"]), tmp_path / "q")
    relevance = Relevance.from_csr(matrix, users=["#a b", "u"], items=["", "#2"])
    trec.write_qrels(relevance, tmp_path / "q")
    assert judgements(trec.read_qrels(tmp_path / "q")) == {("u", "#2"): 1.0}


def test_only_ascii_white_space_separates_fields(write):
    text = "u1 Q0 a\u3000b 1 0.9 t\ru1 Q0 c 2 0.95 t\r"
    assert lists(trec.read_run(write("a.run", text))) == {"u1": ["c", "a\u3000b"]}
