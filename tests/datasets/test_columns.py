"""Columns that are told by their names: which, when in doubt, and what is said."""

from contextlib import nullcontext

import pandas as pd
import pyarrow as pa
import pytest
from events import rows
from raising import raises, warns

from sparse_eval.datasets import GuessWarning, Interactions, load
from sparse_eval.errors import InvalidDataError, InvalidFileError
from sparse_eval.inputs.columns import USUAL, choose_columns

#: Headers of well-known files, with the number of the column of each role.
HEADERS = {
    "userId,movieId,rating,timestamp": (0, 1, 2, 3),  # MovieLens 25M
    "User-ID,ISBN,Book-Rating": (0, 1, 2, None),  # Book-Crossing
    "event_time,event_type,product_id,category_id,brand,price,user_id": (6, 2, None, 0),  # REES46
    "user_id:token,item_id:token,rating:float,timestamp:float": (0, 1, 2, 3),  # RecBole
    "user_id,parent_asin,rating,timestamp": (0, 1, 2, 3),  # Amazon 2023
    ",user,item,value,timestamp": (1, 2, 3, 4),  # the index of a frame comes first
}
REFUSED = (InvalidDataError, InvalidFileError)


@pytest.mark.parametrize("header", HEADERS)
def test_tells_columns_by_their_names(header):
    names = header.split(",")
    roles = dict(zip(("user", "item", "value", "timestamp"), HEADERS[header], strict=True))
    expected = {role: names[place] for role, place in roles.items() if place is not None}
    given = dict.fromkeys(roles, USUAL)
    assert choose_columns(names, given, lambda _: pa.string()).names == expected


@pytest.mark.parametrize(
    ("role", "columns"),
    [
        ("user", ("user", "user_id")),
        ("item", ("item", "movieId")),
        ("value", ("value", "rating")),
        ("gain", ("gain", "value")),
        ("timestamp", ("timestamp", "date")),
        ("rank", ("rank", "position")),
        ("score", ("score", "prediction")),
        ("rank", ("position", "score")),
    ],
)
def test_two_columns_for_a_role_are_an_error_that_shows_both(role, columns):
    names = list(dict.fromkeys([*columns, *{"user", "item"} - {role}]))
    orders = {"rank", "score"} if role in ("rank", "score") else {role}
    given = dict.fromkeys({"user", "item"} | orders, USUAL)
    with raises(InvalidDataError):
        choose_columns(names, given, lambda _: pa.string())
    given |= dict.fromkeys(orders) | {role: columns[0]}
    assert choose_columns(names, given, lambda _: pa.string()).names[role] == columns[0]


def test_a_rank_is_chosen_before_a_score():
    given = dict.fromkeys(("user", "item", "rank", "score"), USUAL)
    for names in ("user,item,score,rank", "user,item,prediction,position", "user,item,rank,est"):
        chosen = choose_columns(names.split(","), given, lambda _: pa.string()).names
        assert "score" not in chosen
        assert "rank" in chosen


def sources(tmp_path, frame):
    """Return every way to load the same table."""
    frame.to_csv(tmp_path / "a.csv", index=False)
    yield lambda **options: load(tmp_path / "a.csv", **options)
    frame.to_parquet(tmp_path / "a.parquet")
    yield lambda **options: load(tmp_path / "a.parquet", **options)
    yield lambda **options: Interactions.from_frame(frame, **options)


def test_says_what_was_recognized(tmp_path):
    line = {"userId": "u", "movieId": "m", "Rating": 4, "date": pd.Timestamp("2024-01-01")}
    for read in sources(tmp_path, pd.DataFrame([line])):
        clicks = read()
        assert rows(clicks) == [("u", "m", 4.0, line["date"].value)]
        assert repr(clicks).endswith(
            "1 events, timestamps without a zone, read as UTC, 'userId' as user, "
            "'movieId' as item, 'Rating' as value, 'date' as timestamp)"
        )
        named = read(user="userId", item="movieId", value=None, timestamp=None)
        assert rows(named) == [("u", "m", 1.0)]
        assert repr(named) == "Interactions(1 users × 1 items, 1 events)"
    frame = pd.DataFrame({"reader": [1], "user": [2], "item": [3.0]})
    for read in sources(tmp_path, frame):
        assert rows(read(user="reader", item="user", value="item")) == [(1, 2, 3.0)]


def test_refuses_columns_that_cannot_be_told(tmp_path):
    frame = pd.DataFrame([{"userId": "u", "customer_id": "c", "movieId": 1, "Rating": 4, "n": 3}])
    for read in sources(tmp_path, frame):
        for options in ({}, {"user": "userId"}, {"user": None}, {"user": "movieId"}):
            with raises(REFUSED):
                read(**options)
        assert len(read(user="userId", value="n")) == 1
    for read in sources(tmp_path, pd.DataFrame([{"who": "a", "movieId": 1}])):
        for options in ({}, {"user": "who", "value": ["a"]}):
            with raises(REFUSED):
                read(**options)
    (tmp_path / "a.csv").write_text("196,242,3\n186,302,3\n")
    with raises(InvalidFileError):  # which hints at header=False
        load(tmp_path / "a.csv")


@pytest.mark.parametrize(
    ("column", "cell", "role"),
    [("rating", -1, "value"), ("weight", "heavy", "value"), ("date", "11/09/2019", "timestamp")],
)
def test_errors_about_recognized_columns_say_how_to_do_without(tmp_path, column, cell, role):
    frame = pd.DataFrame([{"user": 1, "item": 2, column: cell}])
    for read in sources(tmp_path, frame):
        with raises(REFUSED):
            read()
        assert len(read(**{role: None})) == 1
        with pytest.raises(REFUSED) as caught:
            read(**{role: column})
        assert "by its name" not in str(caught.value)


@pytest.mark.parametrize(
    ("column", "is_named", "is_doubted"),
    [
        ("Book-Rating", False, True),
        ("Book-Rating", True, True),
        ("clicks", False, True),
        ("clicks", True, False),
        ("value", False, False),
    ],
)
def test_zeros_of_a_column_that_nobody_chose_are_doubted(tmp_path, column, is_named, is_doubted):
    frame = pd.DataFrame({"user": [1, 1, 2], "item": [0, 1, 2], column: [0, 8, 0]})
    for read in sources(tmp_path, frame):
        with warns(GuessWarning) if is_doubted else nullcontext():
            clicks = read(value=column) if is_named else read()
        assert clicks.values.tolist() == [0.0, 8.0, 0.0]
        assert read(value=None).values.tolist() == [1.0, 1.0, 1.0]  # no warning, which is an error


def test_keeps_events_of_some_types(tmp_path):
    frame = pd.DataFrame(
        {"visitorid": [1, 1, 2, 3], "itemid": [*"xxyz"], "event": ["view", "buy", "buy", "view"]}
    )
    for read in sources(tmp_path, frame):
        bought = read(event="event", events=["buy"])
        assert rows(bought) == [(1, "x", 1.0), (2, "y", 1.0)]
        assert (bought.users.tolist(), bought.items.tolist()) == ([1, 2], ["x", "y"])
        assert "2 events dropped by events" in repr(bought)
        assert len(read(event="event", events=["buy", "view"])) == 4
        assert read(event="event", events=["buy"], users=[3, 2, 1]).users.tolist() == [3, 2, 1]
        for event, events in (
            ("event", ["buys"]),
            ("events", ["buy"]),
            ("event", "buy"),
            (None, ["buy"]),
        ):
            with raises(REFUSED):
                read(event=event, events=events)
    frame["event"] = [3, 4, 4, 3]  # compared as text
    for read in sources(tmp_path, frame):
        assert len(read(event="event", events={"3"})) == len(read(event="event", events=[3])) == 2
