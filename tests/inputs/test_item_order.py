"""The same data give the same numbers, however the inputs order users, items, rows and files."""

import numpy as np
import pandas as pd
import pytest
from public_calls import spelled
from scipy.sparse import csr_matrix
from ways import LEAST, small_blocks

import sparse_eval as se

#: Without it, users with few items have no list, and lists have no first item.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

N_USERS, N_ITEMS = 12, 9

#: Metrics of equally popular items, of random lists, and of sums over the items of a user.
SHORT = (
    "serendipity@4", "serendipity(form=vectors)@4", "serendipity(form=cosine)@4", "calibration@4",
    "aplt@4", "aclt(tail=0.5)@4", "pop_rsp@4", "recall(weights=snips)@4", "novelty@4", "gini@4",
    "personalization@4", "diversity@4", "ndcg@4", "auc",
)  # fmt: skip


class Case:
    """Lists, gains and training data of few users and items, with equally popular items."""

    def __init__(self, seed, *, text):
        rng = np.random.default_rng(seed)
        self.ids = [f"i{n}" for n in range(N_ITEMS)] if text else list(range(0, 50, 5))[:N_ITEMS]
        seen = rng.random((N_USERS, N_ITEMS)) < 0.3
        stored = (rng.random(seen.shape) < 0.3) & ~seen
        self.train = np.argwhere(seen)
        self.gains = [(*pair, float(rng.integers(0, 4))) for pair in np.argwhere(stored)]
        self.scores = np.where(seen, -np.inf, rng.random(seen.shape))
        names = dict(zip(self.ids, range(N_ITEMS), strict=True))
        vectors = rng.standard_normal((N_ITEMS, 3))
        self.items = se.ItemData(
            groups={name: "gh"[n % 2] for name, n in names.items()},
            vectors=pd.DataFrame(vectors, index=list(names)),
            propensity={name: (n + 1) / 10 for name, n in names.items()},
        )

    def labels(self, columns):
        users = [f"u{n:02}" for n in range(N_USERS)]
        return {"users": users, "items": [self.ids[n] for n in columns]}

    def matrices(self, columns):
        """Return scores, gains and training data as matrices with columns in an order."""
        place = np.argsort(columns)
        rows, items, gains = map(np.array, zip(*self.gains, strict=True))
        shape = (N_USERS, N_ITEMS)
        held = csr_matrix((gains, (rows, place[items])), shape)
        seen = csr_matrix((np.ones(len(self.train)), self.train.T), shape)[:, columns]
        labels = self.labels(columns)
        return (
            self.scores[:, columns],
            se.Relevance.from_csr(held, **labels),
            se.Relevance.from_csr(seen, **labels),
        )

    def frames(self, rng):
        """Return lists, gains and training data as frames with rows in a random order."""
        labels = self.labels(range(N_ITEMS))
        ranked = [
            (user, item, rank)
            for user, scores in enumerate(self.scores)
            for rank, item in enumerate(np.argsort(-scores), start=1)
            if np.isfinite(scores[item])
        ]
        tables = []
        for rows, numbers in ((ranked, ["rank"]), (self.gains, ["gain"]), (self.train, [])):
            frame = pd.DataFrame(rows, columns=["user", "item", *numbers])
            for role in ("user", "item"):
                frame[role] = np.array(labels[f"{role}s"])[frame[role].astype(int)]
            tables.append(frame.sample(frac=1, random_state=int(rng.integers(2**31))))
        return tables

    def evaluations(self, metrics, rng):
        """Yield evaluations of these data in several forms."""
        for columns in (np.arange(N_ITEMS), rng.permutation(N_ITEMS)):
            scores, held, seen = self.matrices(columns)
            labels = self.labels(columns)
            inputs = {"train": seen, "item_data": self.items}
            lists = se.Rankings.from_scores(scores, **labels)
            yield se.evaluate(lists, held, metrics, **inputs)
            yield se.evaluate(lists, held, metrics, memory=LEAST, **inputs)
            model = se.Scorer(np.where(np.isfinite(scores), scores, -1.0), **labels)
            of_lists = [metric for metric in metrics if "@" in metric]
            yield se.evaluate_model(model, seen, held, of_lists, item_data=self.items)
        lists, held, seen = self.frames(rng)
        yield se.evaluate(lists, held, metrics, train=seen, item_data=self.items)
        holdout = se.Holdout.from_frames(seen, held)
        yield se.evaluate(lists, holdout, metrics, train=holdout, item_data=self.items)


def evaluations(seed, metrics, *, text):
    case = Case(seed, text=text)
    with small_blocks():
        yield from case.evaluations(metrics, np.random.default_rng(seed))


def test_every_order_gives_the_same_numbers():
    first, *others = evaluations(0, SHORT, text=True)
    for ev in others:
        for name in ev:
            np.testing.assert_array_equal(ev[name], first[name])


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 6))
def test_every_order_gives_the_same_numbers_and_baselines_of_every_metric(seed):
    metrics = spelled("standard", "@4", "", "@1")
    first, *others = evaluations(seed, metrics, text=bool(seed % 2))
    expected = first.summary()
    for ev in others:
        found, wanted = ev.summary(), expected.loc[list(ev.keys())]
        # Blocks have no random baselines of all items.
        unknown = found["random"].isna()
        for table in (found, wanted):
            table.loc[unknown, ["random", "random_se", "lift"]] = np.nan
        same = {"check_exact": True, "check_dtype": False}
        pd.testing.assert_frame_equal(found, wanted[found.columns], **same)


def test_lists_keep_the_columns_of_the_inputs():
    case = Case(0, text=True)
    columns = np.random.default_rng(1).permutation(N_ITEMS)
    scores, held, seen = case.matrices(columns)
    lists = se.Rankings.from_scores(scores, **case.labels(columns))
    ev = se.evaluate(lists, held, "ndcg@4", train=seen)
    assert ev.rankings.items.tolist() == lists.items.tolist()
    assert list(ev.rankings.items_index) == list(lists.items_index)


def test_the_popularity_baseline_of_models_in_any_order_of_their_items():
    users, items = list("abcd"), "wxyz"
    train = pd.DataFrame({"user": users, "item": [*"xyzw"]})
    held_out = pd.DataFrame({"user": users, "item": [*"yzwx"]})
    holdout = se.Holdout.from_frames(train, held_out)
    expected = se.evaluate_model(se.baselines.popularity(holdout), holdout, "ndcg@2")["ndcg@2"]
    factors = np.arange(12, dtype=np.float64).reshape(4, 3)
    for order in ([0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 2, 0]):
        names = [items[number] for number in order]
        model = se.factor_model(factors, factors[order], users=users, items=names)
        for options in ({}, {"memory": "200MB"}):
            ev = se.evaluate_model(model, holdout, "ndcg@2", baselines=True, **options)
            assert ev.baselines["popularity"]["ndcg@2"] == expected
