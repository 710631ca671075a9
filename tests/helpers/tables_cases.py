"""Tables and matrices on disk, whole and damaged, for tests of what reads them."""

import numpy as np
import pandas as pd


def saved_csr(folder, matrix):
    """Write the parts of a CSR as ``.npy`` files."""
    folder.mkdir()
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
