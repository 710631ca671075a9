"""The same table in the frames of every library, and in files."""

import duckdb
import polars as pl
import pyarrow as pa

#: Frames by library.
FRAMES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "lazy polars": lambda frame: pl.from_pandas(frame).lazy(),
    "arrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "reader": lambda frame: FRAMES["arrow"](frame).to_reader(max_chunksize=7),
    "duckdb": duckdb.from_df,
    "dicts": lambda frame: frame.to_dict("records"),
}


def made(library, frame, folder, name="table"):
    """Return a table of a library, or the path of a file of a format."""
    if library in FRAMES:
        return FRAMES[library](frame)
    path = folder / f"{name}.{library}"
    if library == "csv":
        frame.to_csv(path, index=False)
        return path
    frame.to_parquet(path, index=False)
    return str(path)
