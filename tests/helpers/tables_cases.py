"""Tables and matrices on disk, whole and damaged; and models and tables that workers evaluate."""

import numpy as np
import pandas as pd
from merge_cases import same_bits, same_random

import sparse_eval as se


def saved_csr(folder, matrix):
    """Write the parts of a CSR as ``.npy`` files."""
    folder.mkdir(exist_ok=True)
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(matrix, name))
    np.save(folder / "shape.npy", np.array(matrix.shape))
    return folder


def damage_pages(folder):
    """Write two tables in Parquet, of the first of which no more than the schema can be read."""
    rows = pd.DataFrame({"user": np.arange(9000), "item": np.arange(9000) % 7})
    recs, truth = folder / "recs.parquet", folder / "truth.parquet"
    rows.assign(rank=1).to_parquet(recs, index=False)
    rows.to_parquet(truth, index=False)
    data = bytearray(recs.read_bytes())
    data[4:60] = b"\xff" * 56
    recs.write_bytes(data)
    return recs, truth


def make_tables(n_users=200, *, order="rank", gains=False):
    """Return lists and relevant items of users, some of whom are on one side only; in any order."""
    rng = np.random.default_rng(0)
    items = rng.permuted(np.tile(np.arange(40), (n_users, 1)), axis=1)[:, :10]
    recs = pd.DataFrame({"user": np.repeat(np.arange(n_users) * 3 - 60, 10), "item": items.ravel()})
    scores = rng.integers(0, 5, len(recs)) / 4
    recs[order] = scores if order == "score" else np.tile(np.arange(1, 11), n_users)
    held = rng.permuted(np.tile(np.arange(50), (n_users, 1)), axis=1)[:, :4]
    truth = pd.DataFrame({"user": np.repeat(np.arange(n_users) * 3 - 45, 4), "item": held.ravel()})
    if gains:
        truth["gain"] = rng.integers(0, 4, len(truth)).astype(np.float64)
    return tuple(table.sample(frac=1, random_state=0) for table in (recs, truth))


def check_model(client, data, folder):
    """Check that workers give the bits of one process, from memory and from files."""
    metrics = ["ndcg(gain=exp)@{5,10}", "recall(average=micro)@10", "coverage@10", "novelty@10"]
    expected = se.evaluate_model(*data, metrics)
    data[0].save(folder / "als.npz")
    folders = [saved_csr(folder / str(n), side) for n, side in enumerate(data[1:])]
    for given in (data, (folder / "als.npz", *folders)):
        found = se.evaluate_model(*given, metrics, client=client)
        same_bits(found, expected)
        same_random(found, expected)
        assert found.retrieval == expected.retrieval
