"""Threads that are delayed at each hand-over, and blocks in any order: the bits of one thread."""

import random
import sys
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from threading import Barrier

import numpy as np
import pytest
from exact import exact_model
from scipy import sparse

import sparse_eval as se
from sparse_eval.core import threads
from sparse_eval.evaluation import execution
from sparse_eval.kernels.jit import INTERPRETED
from sparse_eval.retrieval import ranker, score_search
from sparse_eval.retrieval.search import Search, SearchSettings

N_USERS, N_ITEMS = 130, 60
OF_USERS = ["ndcg@5", "dcg(gain=exp)@5", "map@3", "recall(average=micro)@5", "err", "mean_rank"]
OF_USERS += ["auc", "percentile_rank", "infap@5", "psp@5", "diversity@3", "novelty@5"]
OF_LISTS = ["coverage@5", "gini@5", "personalization@5", "pop_reo@5"]
TIED = ["ndcg@5", "recall@5", "precision@5", "dcg(gain=exp)@9"]


class Delays(deque):
    """Starts of blocks that are taken in random order, by threads that wait before and after."""

    draw = random.Random(0)  # noqa: S311

    def wait(self):
        draw = self.draw.random()
        time.sleep(draw * 1e-3 if draw < 0.2 else 0)

    def popleft(self):
        self.wait()
        self.rotate(self.draw.randrange(max(len(self), 1)))
        start = super().popleft()
        self.wait()
        return start


@contextmanager
def delayed(least, seed):
    """Let threads take small blocks, of `least` users or items or twice as many, with delays."""
    interval = sys.getswitchinterval()
    Delays.draw = random.Random(seed)  # noqa: S311
    sizes = {"order_tile": 4, "order_block": least, "max_group": 8, "tile": 4, "plain_users": 3}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threads, "deque", Delays)
        patch.setattr(threads, "LEAST", least)
        patch.setattr(threads, "BLOCK", 2 * least)
        patch.setattr(ranker, "_USERS_AT_ONCE", least)
        patch.setattr(score_search, "CELLS_OF_THREAD", least * N_ITEMS)
        patch.setattr(execution, "MINIMUM", 1)
        patch.setattr(execution, "USERS_PER_TASK", 2 * least)
        settings = SearchSettings(**sizes, small_catalogue=0, easy_for_few=0, work_of_threads=0)
        patch.setattr(Search, "settings", settings)
        sys.setswitchinterval(1e-6)
        try:
            yield
        finally:
            sys.setswitchinterval(interval)


def numbers_of(evaluation):
    """Return the values of all users, or those about all of them, as bytes."""
    parts = []
    for plan in evaluation.request.plans:
        name = str(plan.metric)
        parts.append(evaluation.values(name) if plan.per_user else np.float64(evaluation[name]))
    return b"|".join(part.tobytes() for part in parts)


def problem():
    """Return lists, tied lists, gains with judged zeros, training data, candidates and models."""
    rng = np.random.default_rng(0)
    table = rng.integers(0, 9, (N_USERS, N_ITEMS)) / 8
    draws = rng.random((N_USERS, N_ITEMS))
    train = sparse.csr_matrix((draws < 0.2).astype(np.float32))
    held = sparse.csr_matrix((draws > 0.2) & (draws < 0.4), dtype=np.float64)
    held.data = rng.integers(0, 4, held.nnz) * 1.0  # with stored zeros
    held.data[held.indptr[5] : held.indptr[6]] = 0  # of a user without relevant items
    lists = se.Rankings.from_scores(np.where(train.toarray() > 0, -1, table), k=40)
    tied = se.Rankings.from_scores(table, k=20, ties="average")
    weights = np.round(rng.random((N_ITEMS, N_ITEMS)) * 8) / 8
    return lists, tied, held, train, draws > 0.1, exact_model(train), weights


def ways():
    """Return calls by name, each of which returns bytes, given the number of threads."""
    lists, tied, held, train, mask, factors, weights = problem()
    candidates = sparse.csr_matrix(mask & (train.toarray() == 0))
    of_users = np.resize(weights, (N_USERS, N_ITEMS))

    def evaluate(given, metrics, num_threads, **options):
        return numbers_of(se.evaluate(given, held, metrics, num_threads=num_threads, **options))

    def of_model(model, metrics, num_threads, **options):
        found = se.evaluate_model(model, train, held, metrics, num_threads=num_threads, **options)
        return numbers_of(found)

    def pooled(way, num_threads):
        if num_threads == 1:
            return way(num_threads=1)
        with ThreadPoolExecutor(num_threads) as pool:
            return way(num_threads=None, client=pool)

    def listed(num_threads, **options):
        found = se.top_k(factors, 7, num_threads=num_threads, **options)
        return found.ids.tobytes() + found.scores.tobytes()

    return {
        "lists": partial(evaluate, lists, OF_USERS + OF_LISTS, train=train),
        "one metric": partial(evaluate, lists, "recall@5"),
        "hits": partial(evaluate, lists, "auc, mean_rank, fcp@9, r_precision", train=train),
        "tied lists": partial(evaluate, tied, TIED),
        "candidates": partial(evaluate, lists, ["ndcg@5", "auc"], candidates=candidates),
        "blocks": partial(pooled, partial(evaluate, lists, "ndcg@5, coverage@5, mrr")),
        "factors, ranks": partial(of_model, factors, "ndcg@5, mrr@3"),
        "factors, all ranks": partial(of_model, factors, "ndcg, auc, mean_rank"),
        "factors, lists": partial(of_model, factors, ["ndcg@5", *OF_LISTS]),
        "factors, candidates": partial(of_model, factors, "ndcg@5", candidates=candidates),
        "factors, blocks": partial(pooled, partial(of_model, factors, "ndcg@5, coverage@5")),
        "item-item": partial(of_model, weights, "ndcg@5, coverage@5"),
        "sparse item-item": partial(of_model, sparse.csr_matrix(weights), "ndcg@5, auc"),
        "function": partial(of_model, lambda users: of_users[users], "ndcg@5, coverage@5"),
        "top_k": partial(listed, train=train),
        "top_k, candidates": partial(listed, candidates=candidates),
    }


#: Calls that take long are made once while others are made twelve times.
SLOW = {"lists", "blocks", "factors, ranks", "factors, all ranks", "factors, lists"}
SLOW |= {"factors, candidates", "factors, blocks"}


def check_all(n_calls, at_once):
    """Make calls of every way, so many at a time, with 2 to 16 threads and blocks of any size."""
    calls, draw = ways(), random.Random(1)  # noqa: S311
    expected = {name: call(num_threads=1) for name, call in calls.items()}
    rounds = [name for name in calls for _ in range(1 if name in SLOW else 12)]
    with ThreadPoolExecutor(at_once) as pool:
        for first in range(0, n_calls, len(rounds)):
            draw.shuffle(rounds)
            with delayed(draw.choice((10, 16, 25, 40)), first):
                tasks = [
                    (name, pool.submit(calls[name], num_threads=draw.randint(2, 16)))
                    for name in rounds[: n_calls - first]
                ]
                for name, task in tasks:
                    assert task.result() == expected[name], (name, first)


@pytest.mark.skipif(INTERPRETED, reason="kernels hold the interpreter's lock")
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_delayed_threads_give_the_bits_of_one():
    check_all(60, 2)


@pytest.mark.long
@pytest.mark.skipif(INTERPRETED, reason="kernels hold the interpreter's lock")
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("at_once", [1, 4])
def test_delayed_threads_give_the_bits_of_one_in_thousands_of_calls(at_once):
    check_all(5000, at_once)


def test_a_smaller_block_may_be_done_before_the_others(monkeypatch):
    lists, _, held, *_ = problem()
    expected = numbers_of(se.evaluate(lists, held, "ndcg@5, map, coverage@5"))
    monkeypatch.setattr(threads, "LEAST", 30)
    monkeypatch.setattr(Delays, "wait", lambda _: None)
    monkeypatch.setattr(Delays, "rotate", lambda starts, _: deque.rotate(starts, 1))  # the last one
    monkeypatch.setattr(threads, "deque", Delays)
    found = se.evaluate(lists, held, "ndcg@5, map, coverage@5", num_threads=5)
    assert numbers_of(found) == expected


def test_threads_that_read_one_evaluation_get_the_same_numbers():
    lists, _, held, train, *_ = problem()

    def read(evaluation):
        barrier.wait()
        table = evaluation.summary()
        activity = evaluation.by("activity")
        return table.to_json(double_precision=15), activity.to_json(double_precision=15)

    def evaluated():
        return se.evaluate(lists, held, "ndcg@5, recall(average=micro)@5, gini@5", train=train)

    barrier = Barrier(1)
    expected = read(evaluated())
    barrier = Barrier(8)
    with delayed(25, 0), ThreadPoolExecutor(8) as pool:
        assert set(pool.map(read, [evaluated()] * 8)) == {expected}
