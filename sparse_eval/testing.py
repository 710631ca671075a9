"""Check metrics, models and data sources, of this package or of a plug-in.

Each check makes changes that should leave every number the same. It raises an `AssertionError` that
shows the first change with a different number.
"""

from __future__ import annotations

import math
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from .datasets.split import Holdout
from .datasets.split.parts import open_train
from .errors import InvalidMetricError
from .evaluation.evaluate import evaluate
from .inputs.item_data import ItemData
from .inputs.labelled import labels_of
from .inputs.rankings import Rankings
from .inputs.relevance import Relevance
from .metrics import REGISTRY, Choice, Definition, Metric
from .metrics.conventions import convention_named
from .metrics.request import MetricsLike, Protocol, Request
from .models.evaluate_model import evaluate_model
from .models.opening import as_model
from .models.recommend import recommend

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    import pandas as pd

    from .evaluation.runners import ClientLike
    from .models.opening import ModelLike
    from .results import Evaluation

__all__ = ["check_metric", "check_model", "check_source"]

_MEMORY = 1 << 29


def check_metric(
    metric: MetricsLike,
    *,
    expected: Callable[[list[int], dict[int, float]], float] | None = None,
    n_problems: int = 20,
    seed: int = 0,
) -> None:
    """Check a metric on random lists and relevant items.

    The random problems have users without a list or a relevant item, short lists, lists with gaps,
    stored zeros, and items that are never listed. The value of each user and the mean must not
    depend on the order of users or the column numbers of items. Nor may they depend on items behind
    the cut-off, other metrics, or blocks of users. They are compared to the last bit. Values must
    be in the registered range.

    Parameters
    ----------
    metric : str, Metric, iterable of them, or Protocol
        A spelling such as ``"ndcg@10"``, or the name of a registered metric. A name stands for all
        values of its options, the defaults at several cut-offs. A `Protocol` also has rules.
    expected : callable, optional
        ``expected(items, gains)``, a plain definition of one metric. `items` are the items of a
        user in the order of the list, which may be longer than the cut-off. `gains` maps items to
        the stored gains of that user, explicit zeros included. The returned float must agree
        within a relative difference of 1e-12 for each user with a relevant item.
    n_problems : int
        The number of random problems.
    seed : int
        The same seed draws the same problems.

    Raises
    ------
    AssertionError
        If a value is wrong. The message names the metric, the change and the first user.
    InvalidMetricError
        If there is no such metric, or `expected` is given with several metrics.

    See Also
    --------
    check_model : Check a model.
    sparse_eval.register_metric : Register the metric first.

    Notes
    -----
    Some metrics put the lower column first among items that equally many users have in train.
    These items therefore keep their order when columns are numbered differently. Metrics that take
    train or data of items may then differ by a relative 1e-12, because sums are in the order of
    columns. Metrics over lists and metrics that use "candidates" may depend on the number of items,
    so the check adds no unused columns for them. Lists have gaps only if no metric of the call is
    over lists or uses "judged".

    Examples
    --------
    >>> import sparse_eval as se
    >>> def reciprocal_rank(items, gains):
    ...     hits = [rank for rank, item in enumerate(items[:5], 1) if gains.get(item, 0) > 0]
    ...     return 1 / hits[0] if hits else 0.0
    >>> se.testing.check_metric("mrr@5", expected=reciprocal_rank, n_problems=3)
    """
    if isinstance(metric, str) and metric in REGISTRY:
        metric = _spellings(REGISTRY[metric])
    protocol = Protocol.of(metric)
    if expected is not None and len(protocol.metrics) > 1:
        raise InvalidMetricError(
            f"expected= defines one metric, and there are {len(protocol.metrics)}; give a spelling "
            f"such as {str(protocol.metrics[0])!r}",
            argument="expected",
        )
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(n_problems):
            n_users = (12, 5, 1, 2)[number % 4]
            problem = _Problem.drawn(rng, protocol, n_users, plain=expected is not None)
            whole = problem.evaluated()
            where = f"problem {number} of seed {seed}"
            _check_range(whole, where)
            if expected is not None:
                _check_expected(whole, problem, expected, where)
            for change, other, users in _variants(problem, rng):
                _check_same(other, whole, f"{change}, {where}", users)


class _Problem(NamedTuple):
    """Positions, gains and training data of users × items, and data of items."""

    protocol: Protocol
    positions: Any
    gains: Any
    train: Any
    items: dict[str, Any]

    @classmethod
    def drawn(
        cls, rng: np.random.Generator, protocol: Protocol, n_users: int, *, plain: bool
    ) -> _Problem:
        """Draw a problem that the metrics accept; a plain problem has no gaps in lists."""
        n_items = int(rng.integers(4, 16))
        shape = n_users, n_items
        kinds = [metric.definition for metric in protocol.metrics]
        certain = plain or any(one.over == "lists" or "judged" in one.uses for one in kinds)
        rules = convention_named(protocol.convention)
        zero = float(rules.zeros == "error")
        positions = np.zeros(shape, np.int64)
        stored = rng.random(shape) < rng.choice([0.2, 0.5])
        stored[rng.random(n_users) < 0.1] = False
        stored[[0, -1], rng.integers(n_items)] = True
        least = 1.0 if rules.cuts_gains else 0.5
        gains = rng.choice([zero, least, 1.0, 1.0, 2.0, 3.0], shape)
        gains[rng.random(n_users) < 0.2] = zero
        gains[[0, -1]] = 3.0  # the largest gain, in both halves
        train = rng.random(shape) < 0.4
        train[rng.random(n_users) < 0.2] = False
        apart = rng.random() < 0.7  # else lists and relevant items may be in train
        train &= ~(stored & apart)
        for user in range(n_users):
            length = int(rng.choice([0, 1, 3, n_items, int(rng.integers(n_items + 1))]))
            length = length or int(user in (0, n_users - 1))
            listed = rng.permutation(n_items)[:length]
            train[user, listed] &= not apart
            # A gap stands for an irrelevant item that could be recommended.
            other = ~(train[user] | stored[user])
            other[listed] = False
            n_gaps = 0 if certain or rng.random() < 0.5 else int(other.sum())
            positions[user, listed] = np.sort(rng.permutation(length + n_gaps)[:length]) + 1
            if not length and not stored[user].any():  # in a frame each user has a row
                stored[user, 0], gains[user, 0] = True, zero
        data = {
            "groups": rng.integers(0, 3, n_items),
            "vectors": rng.normal(size=(n_items, 3)),
            "propensity": rng.integers(1, 9, n_items) / 8,
        }
        held = sparse.csr_matrix((gains[stored], np.nonzero(stored)), shape)
        others = rng.random((3, n_items)) < 0.5  # users of train only
        others[:, 0] = others[0] = True
        if rng.random() < 0.5:  # no two items are equally popular
            others = np.tri(n_items, dtype=bool)[:, rng.permutation(n_items)]
            others = np.repeat(others, n_users + 1, axis=0)
        seen = sparse.csr_matrix(np.vstack([train, others]) * 1)
        sides = sparse.csr_matrix(positions), held, seen
        return cls(protocol, *sides, data).of(protocol.metrics)

    def evaluated(self, **more: Any) -> Evaluation:
        """Evaluate the problem, or the same one in another form."""
        items = ItemData(**self.items)
        options = self.sides() | {"item_data": items, "metrics": self.protocol} | more
        return evaluate(**options)

    def sides(self) -> dict[str, Any]:
        """Return the matrices of users × items by the role that each has in `evaluate`."""
        return {"predictions": self.positions, "validation": self.gains, "train": self.train}

    def taken(self, users: Any, items: Any) -> _Problem:
        """Return the problem with different row and column numbers."""
        of_train = np.r_[users, len(users) : self.train.shape[0]]
        sides = [side[users][:, items] for side in (self.positions, self.gains)]
        sides.append(self.train[of_train][:, items])
        taken = {name: value[items] for name, value in self.items.items()}
        return self._replace(positions=sides[0], gains=sides[1], train=sides[2], items=taken)

    def of(self, chosen: Iterable[Metric]) -> _Problem:
        """Return the problem for some of the metrics."""
        protocol = replace(self.protocol, metrics=list(chosen))
        inputs = _request(protocol).side_inputs
        items = {k: v for k, v in self.items.items() if inputs & {k, f"item_{k}"}}
        return self._replace(protocol=protocol, items=items)

    def evaluated_part(self, first: int, last: int) -> Evaluation:
        """Evaluate some users by id, to be merged with the others."""
        rows, everyone = np.arange(first, last), np.arange(self.train.shape[0])
        return self.evaluated(
            predictions=Rankings.from_positions(self.positions[rows], users=rows),
            validation=Relevance.from_csr(self.gains[rows], users=rows),
            train=Relevance.from_csr(self.train, users=everyone),
        )


#: After this change, sums over the data of items may differ in the last bits.
_COLUMNS = "items have other columns"

#: After this change, there are no values of users.
_TOTALS = "no values are kept"


def _variants(problem: _Problem, rng: np.random.Generator) -> Iterator[tuple[str, Evaluation, Any]]:
    """Yield changes, the evaluation of the problem with each, and the row that users had before."""
    n_users, n_items = problem.gains.shape
    metrics = problem.protocol.metrics
    everyone, all_items = np.arange(n_users), np.arange(n_items)
    order = rng.permutation(n_users)
    yield "users are in another order", problem.taken(order, all_items).evaluated(), order
    columns, popularity = rng.permutation(n_items), np.diff(problem.train.tocsc().indptr)
    for count in set(popularity.tolist()):  # equally popular items keep their order
        tied = np.isin(columns, np.flatnonzero(popularity == count))
        columns[tied] = np.sort(columns[tied])
    yield _COLUMNS, problem.taken(everyone, columns).evaluated(), None
    yield "memory is limited", problem.evaluated(memory=_MEMORY), None
    if n_users > 1:
        cut = int(rng.integers(1, n_users))
        parts = problem.evaluated_part(cut, n_users), problem.evaluated_part(0, cut)
        yield "halves are merged", parts[0].merge(parts[1]), None
    one = metrics[int(rng.integers(len(metrics)))]
    yield "no other metric is computed", problem.of([one]).evaluated(), None
    ends = [metric for metric in metrics if metric.cutoff]
    if problem.positions.multiply(problem.train[:n_users]).nnz:  # listed items are candidates
        ends = [metric for metric in ends if "candidates" not in metric.definition.uses]
    if ends:
        one = ends[int(rng.integers(len(ends)))]
        whole = Rankings.from_positions(problem.positions)
        shorter = problem.of([one]).evaluated(predictions=whole.head(one.k))
        yield f"lists end at rank {one.k}", shorter, None
    small = [m for m in metrics if not _request(problem.of([m]).protocol).needs_catalogue]
    if small and not problem.items:
        wider = problem.of(small)
        wide = {role: matrix.copy() for role, matrix in wider.sides().items()}
        for matrix in wide.values():
            matrix.resize(matrix.shape[0], n_items + 3)
        yield "there are more items", wider.evaluated(**wide), None


def _request(protocol: Protocol) -> Request:
    """Return the request before its inputs are checked."""
    rules = convention_named(protocol.convention)
    return Request(protocol.metrics, rules, "exclude", frozenset())


def _spellings(entry: Definition) -> list[str]:
    """Return the spellings of a metric: all values of its options, or some numbers."""
    values = []
    for option in entry.options:
        if isinstance(option, Choice):
            words = option.values
        else:
            words = option.default, "0.5" if option.below <= 1 else "5"
        values.append([f"{option.name}={word}" for word in words])
    cutoffs = [] if entry.cutoff == "required" else [""]
    if entry.cutoff != "none":
        cutoffs += [f"@{k}" for k in (1, 2, 5) if k >= entry.formula.least_cutoff]
    names = []
    for number, chosen in enumerate(product(*values)):
        form = entry.name + (f"({','.join(chosen)})" if chosen else "")
        # The default options at each cut-off, others at one.
        for end in cutoffs if number == 0 else [cutoffs[number % len(cutoffs)]]:
            protocol = Protocol(form + end)
            with suppress(InvalidMetricError):  # its options do not fit together
                Request.parse(protocol, _request(protocol).side_inputs)
                names.append(form + end)
    return names


def _check_range(ev: Evaluation, where: str) -> None:
    for row, name in enumerate(ev.keys()):
        low, high = ev.request.range_of(row)
        found = {"all users": ev[name], **_values(ev, name)}
        slack = 1e-12 * max(1.0, abs(low), abs(high) if math.isfinite(high) else 0.0)
        for user, value in found.items():
            if value < low - slack or value > high + slack:
                raise AssertionError(
                    f"{name} of user {user} is {value!r}, outside of its range from {low:g} to "
                    f"{high:g} ({where})"
                )


def _check_expected(
    ev: Evaluation, problem: _Problem, expected: Callable[..., float], where: str
) -> None:
    (metric,) = ev.keys()
    values = _values(ev, metric)
    for user in range(len(values)):
        ranked, held = problem.positions[user], problem.gains[user]
        gains = dict(zip(held.indices.tolist(), held.data.tolist(), strict=True))
        if max(gains.values(), default=0) > 0:
            items = ranked.indices[np.argsort(ranked.data)].tolist()
            one, found = float(expected(items, gains)), values[user]
            if not _is_same(found, one, 1e-12):
                raise AssertionError(
                    f"{metric} of user {user} is {found!r}, but {one!r} is expected of the list "
                    f"{items} and the gains {gains} ({where})"
                )


def _is_same(one: float, other: float, close: float) -> bool:
    """Return whether two numbers are both NaN, or differ relatively by at most `close`."""
    both_nan = math.isnan(one) and math.isnan(other)
    return both_nan or math.isclose(one, other, rel_tol=close, abs_tol=close / 1000)


def _values(ev: Evaluation, name: str) -> dict[Hashable, float]:
    """Return the values by user, or an empty dict for a metric of all users together."""
    if not ev._part.traits_of(name).per_user:
        return {}
    return dict(zip(_users(ev), ev.values(name).tolist(), strict=True))


def _users(ev: Evaluation) -> list[Hashable]:
    """Return the ids of users, or their rows."""
    return ev._values.users.tolist()


def _check_same(found: Evaluation, expected: Evaluation, change: str, rows: Any = None) -> None:
    """Compare the metrics of two evaluations to the last bit."""
    for name in found:
        before: dict[Hashable, float] = {}
        here = before
        if _TOTALS not in change:
            before, here = _values(expected, name), _values(found, name)
        if rows is not None:
            here = {int(rows[row]): here[row] for row in here if isinstance(row, int)}
        (plan,) = (plan for plan in found.request.plans if str(plan.metric) == name)
        close = 1e-12 if _COLUMNS in change and plan.inputs else 0.0
        pairs = [(f"user {user!r}", value, before.get(user)) for user, value in here.items()]
        pairs.append(("all users", found[name], expected[name]))
        for user, value, other in pairs:
            if other is None or not _is_same(value, other, close):
                raise AssertionError(
                    f"{name} of {user} is {value!r}, and was {other!r} before: {change}"
                )


def check_model(
    model: ModelLike,
    train: Any,
    validation: Any = None,
    *,
    metrics: MetricsLike = ("ndcg@{5,10}", "map@10", "recall@10"),
    k: int = 10,
) -> None:
    """Check the lists of a model, and that all methods of computing its metrics agree.

    No list has an item twice, or an item that its user has in train. Lists do not depend on the
    order of users, on groups of users, or on threads. `evaluate_model` (in memory, within a memory
    limit, with an executor, with and without lists) agrees to the last bit with `evaluate` of the
    lists that `recommend` returns.

    Parameters
    ----------
    model, train, validation
        As in `evaluate_model`. A `Holdout` replaces the last two.
    metrics : str, Metric, iterable of them, or Protocol
        Each with a cut-off, because lists are evaluated too.
    k : int
        The length of the lists to compare.

    Raises
    ------
    AssertionError
        If two methods differ. The message names the model, the change and the first user.
    SparseEvalError
        As from `evaluate_model`.

    See Also
    --------
    check_metric, check_source : Check a metric, or a data source.

    Notes
    -----
    Neighbour models of implicit and a model in a `Recommender` make their own lists. Their scores
    may differ in the last bits between groups of users. `memory` and `client` do not take such
    models, so the check leaves them out.

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=40, n_items=30, n_interactions=400, seed=0)
    >>> holdout = se.split.random(clicks, seed=0)
    >>> se.testing.check_model(se.baselines.item_knn(holdout.train), holdout)
    """
    parts = (train,) if isinstance(train, Holdout) else (train, validation)
    protocol = Protocol.of(metrics)
    held = validation
    if isinstance(train, Holdout):
        held = train.validation
        train = train.train if train.fold_in is None else train.seen
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        seen = open_train(train)
        recs = _check_lists(model, parts[0], seen, protocol, k)
        _check_ways(model, (*parts, protocol), recs, seen, held)


def _check_lists(model: Any, data: Any, seen: Any, protocol: Protocol, k: int) -> pd.DataFrame:
    """Check what is in the lists, and that they depend on their users only; return the lists."""
    import pandas as pd

    def fail(what: str, rows: pd.DataFrame) -> None:
        if len(rows):
            user, item = rows["user"].tolist()[0], rows["item"].tolist()[0]
            raise AssertionError(
                f"{type(model).__name__}: {what}, first for user {user!r} and item {item!r}"
            )

    length, seen_out = max([k, *(metric.k for metric in protocol.metrics)]), protocol.filter_seen
    recs = recommend(model, data, length, filter_seen=seen_out)
    fail("an item is listed twice", recs[recs.duplicated(["user", "item"])])
    place = recs.groupby("user", sort=False).cumcount() + 1
    fail("ranks do not count from 1", recs[recs["rank"] != place])
    if seen_out:
        users, items = (
            np.arange(n) if ids is None else ids
            for n, ids in zip(seen.shape, labels_of(seen), strict=True)
        )
        rows, columns = seen.tocoo().coords
        known = pd.DataFrame({"user": users[rows], "item": items[columns]})
        fail("an item of train is listed", recs.merge(known, on=["user", "item"]))
    users = recs["user"].unique()
    shuffled = np.random.default_rng(0).permutation(users)
    names = ["user", "item", "rank"] + ["score"] * as_model(model).exact
    for change, group, threads in (
        ("users are in another order", shuffled, None),
        ("users are in two groups", users[: len(users) // 3], None),
        ("users are in two groups", users[len(users) // 3 :], None),
        ("one thread is used", users, 1),
    ):
        found = recommend(
            model, data, length, filter_seen=seen_out, users=group, num_threads=threads
        )
        expected = recs.set_index("user").loc[group].reset_index()
        same = len(found) == len(expected) and (
            found[names].reset_index(drop=True) == expected[names]
        ).all(axis=1)
        differ = np.broadcast_to(~np.asarray(same), len(expected))
        fail(f"the lists differ if {change}", expected[differ])
    return recs


def _check_ways(model: Any, data: Any, recs: pd.DataFrame, seen: Any, held: Any) -> None:
    """Check all methods of computing the metrics."""
    name = type(model).__name__
    whole = evaluate_model(model, *data)
    _check_range(whole, name)
    ways: dict[str, dict[str, Any]] = {
        "one thread is used": {"num_threads": 1},
        _TOTALS: {"keep": "totals"},
        "lists are kept": {"keep": "lists"},
    }
    with ThreadPoolExecutor(2) as pool:
        if as_model(model).exact:
            ways["memory is limited"] = {"memory": _MEMORY}
            ways["users are shared by an executor"] = {"client": pool}
        for change, options in ways.items():
            found = evaluate_model(model, *data, **options)
            _check_same(found, whole, f"{change}, {name}")
    own: Any = recs[recs["user"].isin(_users(whole))].drop(columns="score")
    if whole._values.labels is None:
        rows = own["rank"], (own["user"], own["item"])
        own = Rankings.from_positions(sparse.csr_matrix(rows, seen.shape))
    found = evaluate(own, held, data[-1], train=seen)
    _check_same(found, whole, f"its lists are evaluated, {name}")


def check_source(
    predictions: Any,
    validation: Any,
    *,
    like: tuple[Any, Any],
    metrics: MetricsLike = ("ndcg@10", "recall@5", "map@10", "mrr", "hit_rate@1"),
    train: Any = None,
    memory: int | None = None,
    client: ClientLike | None = None,
) -> None:
    """Check that lists and relevant items in another form give the same evaluation.

    All numbers of `Evaluation.summary`, the users with their values, and the ids of users and items
    must equal the plain form's to the last bit. This holds with and without values of users.

    Parameters
    ----------
    predictions, validation : as in `evaluate`, or callable
        The form to check. For a form that can be read only once, such as an Arrow stream, give a
        function without arguments: it is called for each evaluation.
    like : tuple
        Predictions and validation in a plain form that works, with the same ids.
    metrics : str, Metric, iterable of them, or Protocol
        The metrics to compare.
    train : as in `evaluate`, optional
        Training data for both evaluations.
    memory, client : as in `evaluate`, optional
        Where to evaluate the form to check. The plain form is evaluated in memory.

    Raises
    ------
    AssertionError
        If something differs. The message names the metric and the first user.
    SparseEvalError
        As from `evaluate`.

    See Also
    --------
    check_metric, check_model : Check a metric or a model.

    Examples
    --------
    >>> import pandas as pd
    >>> import sparse_eval as se
    >>> lists = pd.DataFrame({"user": ["a", "a", "b"], "item": [7, 8, 8], "rank": [1, 2, 1]})
    >>> held_out = pd.DataFrame({"user": ["a", "b"], "item": [8, 7], "gain": [1.0, 2.0]})
    >>> se.testing.check_source(lists[::-1], held_out, like=(lists, held_out))
    """
    form = f"the data are a {type(predictions).__name__} and a {type(validation).__name__}"
    for keep in ("totals", "values"):
        options: dict[str, Any] = {"train": train, "keep": keep}
        lists, held = (side() if callable(side) else side for side in (predictions, validation))
        found = evaluate(lists, held, metrics, memory=memory, client=client, **options)
        plain = evaluate(*like, metrics, **options)
        _check_same(found, plain, form + (f" and {_TOTALS}" if keep == "totals" else ""))
        columns = ["std", "ci_low", "ci_high", "n_users", "n_skipped"]
        one, other = found.summary()[columns], plain.summary()[columns]
        for name in one.index[~((one == other) | (one.isna() & other.isna())).all(axis=1)]:
            raise AssertionError(
                f"{name} has {one.loc[name].to_dict()}, and had {other.loc[name].to_dict()}: {form}"
            )
    prints = [
        dict(zip(_users(ev), ev._values.fingerprints.tolist(), strict=True))
        for ev in (found, plain)
    ]
    for user in prints[0].keys() | prints[1].keys():
        if prints[0].get(user) != prints[1].get(user):
            raise AssertionError(f"user {user!r} has other relevant items: {form}")
