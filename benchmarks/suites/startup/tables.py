"""The tables of the suite `startup`."""

from typing import Any

from harness.format import Row, conditions, label, markdown, summed, timed


def startup(report: dict[str, Any]) -> str:
    heads = {
        "import": "import",
        "first call": f"first ndcg@10 after it, {report['inputs']['n_lists']:,} lists",
    }
    heads |= {
        "cold": "import and first ndcg@10, no kernel compiled yet, 500 lists",
        "cold model": "the same and the first evaluate_model, no kernel compiled yet",
        "compiled ahead": "the same after `sparse-eval compile`",
    }
    tables = [
        markdown(
            (head, "median", "× ours"),
            [
                (label(report, key), *timed(entry))
                for key, entry in report["cases"][case]["contestants"].items()
            ],
        )
        for case, head in heads.items()
        if case in report["cases"]
    ]
    heavy = ", ".join(report["heavy_modules_imported"]) or "none"
    note = f"Of implicit, pandas and typer, `import sparse_eval` imports: {heavy}."
    return "\n\n".join([*tables, f"{note} {conditions(report)}"])


def summary(report: dict[str, Any]) -> list[Row]:
    """Return the row of the front page."""
    return [summed(report, "import", report["cases"]["import"])]


TABLES = {"startup": startup}
SUMMARY = (3, summary)
