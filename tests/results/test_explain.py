"""One user's list: with the names of its items, and made again where it was not kept."""

import pandas as pd
import pyarrow as pa
import pytest
from evaluations import TEXT, in_memory, of_model, saved
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

EV = se.evaluate({"u": ["a", "b", "c"], "v": ["a"]}, {"u": ["b", "d"], "v": ["a"]}, "ndcg@3")
FILMS = pd.DataFrame(
    {"title": ["Alien", "Brazil", "Clue"], "year": [1979, 1985, 1985]}, index=["a", "b", "d"]
)


def test_every_column_of_a_table_is_beside_its_item(tmp_path):
    plain = EV.explain("u")
    with_items = FILMS.rename_axis("item").reset_index()
    with_items.to_csv(tmp_path / "films.tsv.gz", index=False, sep="\t")
    tables = [FILMS.iloc[::-1], with_items, pa.Table.from_pandas(with_items)]
    for table in [*tables, tmp_path / "films.tsv.gz"]:
        found = EV.explain("u", item_names=table)
        assert list(found) == ["rank", "item", "title", "year", *list(plain)[2:]]
        assert found["item"].tolist() == ["a", "b", "c", "d"]
        # The third has no name, and the last is relevant, and not listed.
        assert found["title"].fillna("").tolist() == ["Alien", "Brazil", "", "Clue"]
        assert float(found["year"].tolist()[0]) == 1979
        pd.testing.assert_frame_equal(found[list(plain)], plain)


def test_columns_are_named_by_number():
    ev = se.evaluate(se.Rankings.from_topk([[0, 2]]), csr_matrix([[0, 1, 3, 2]]), "mrr@2")
    found = ev.explain(0, item_names={0: "w", 1: 1979, 2: "y", 3: "z"})
    assert found["name"].tolist() == ["w", "y", "z", 1979]  # missed ones by their gains
    assert found["contribution"].tolist() == pytest.approx([0, 1.89279, 0, 0], 1e-5)


@pytest.mark.parametrize(
    "names",
    [
        pd.DataFrame(index=["a"]),
        pd.Series(["x", "y"], index=["a", "a"]),
        FILMS.rename(columns={"year": "gain"}),
        {0: "Alien"},
    ],
)
def test_refuses_names_that_do_not_fit(names):
    with raises(InvalidDataError):
        EV.explain("u", item_names=names)


def test_a_list_that_was_not_kept_is_made_again(tmp_path):
    kept, without = in_memory(TEXT), in_memory(TEXT, keep="totals")
    user = TEXT[7]
    pd.testing.assert_frame_equal(without.explain(user), kept.explain(user))
    with raises(InvalidDataError):
        without.explain("nobody")
    with raises(InvalidDataError):  # where the matrices are not
        saved(without, tmp_path / "a").explain(user)
    # The lists of a model, and of a baseline.
    kept, without = of_model(), of_model(keep="totals")
    pairs = (kept, without), (kept.baselines["popularity"], without.baselines["popularity"])
    for one, other in pairs:
        for user in kept.per_user.index[[0, 30, 59]]:
            pd.testing.assert_frame_equal(other.explain(user), one.explain(user))
