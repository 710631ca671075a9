"""Add index entries to pages: the search of the site lists the page first for these words."""

from typing import Any

ENTRIES = {
    "guide/time_splits": (
        "train test split",
        "train/test split",
        "train_test_split",
        "leave one out",
        "leave-one-out",
        "temporal split",
        "split by time",
        "holdout",
    ),
    "guide/data": ("load csv", "read csv", "load data", "pandas dataframe"),
    "guide/evaluate": (
        "evaluate implicit model",
        "evaluate an implicit model",
        "save results",
        "load results",
        "cold start",
    ),
    "guide/compare": (
        "a/b test",
        "ab test",
        "compare two models",
        "significance test",
        "confidence interval",
        "cross validation",
    ),
    "guide/requests": ("impressions", "sessions", "weights", "clustered standard errors"),
    "guide/candidates": ("negative sampling", "sampled metrics"),
    "guide/nightly": ("evaluate checkpoints", "exit status", "cron", "release", "promote"),
    "guide/tune": ("hyperparameter search", "grid search"),
    "guide/training": ("early stopping", "checkpoints", "mlflow"),
    "coming_from/ranx": ("ranx",),
    "coming_from/implicit": ("ranking_metrics_at_k",),
}


def add_entries(_app: Any, page: str, source: list[str]) -> None:
    """Insert the entries below the title of the page."""
    if entries := ENTRIES.get(page):
        # The search puts main entries, marked by !, above all other results.
        marked = ", ".join(f"! {entry}" for entry in entries)
        title, below, rest = source[0].partition("\n")
        source[0] = f"{title}{below}\n```{{index}} {marked}\n```\n{rest}"


def setup(app: Any) -> dict[str, bool]:
    app.connect("source-read", add_entries)
    return {"parallel_read_safe": True}
