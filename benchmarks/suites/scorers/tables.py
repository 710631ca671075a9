"""The table of the suite `scorers`."""

from typing import Any

from harness.format import conditions, duration, markdown, size, times

TITLES = {
    "evaluate_model": "`evaluate_model(…, candidates=…)`",
    "implicit": "implicit, `recommend(user, …, items=…)`, user by user",
    "NumPy": "NumPy, product and `argsort`, user by user",
    "held_out_ranks": "`ranks`, k = 20",
    "full_ranks": "`ranks`, all",
    "dense.npy": "dense, mapped from disk",
    "sparse.npz": "sparse",
}


def scorers(report: dict[str, Any]) -> str:
    """Return the cost of rankings other than short lists of all items."""
    inputs, matrices = report["inputs"], report["item_item"]
    model = f"{inputs['n_users']:,} users × {inputs['n_items']:,} items"
    rows: list[tuple[str, ...]] = []
    groups = (
        ("candidates", f"{inputs['n_candidates']} candidates of each user"),
        ("ranks", f"{inputs['n_validation']:,} held-out items"),
    )
    for key, title in groups:
        rows.append((f"{title}, {model}, {inputs['n_factors']} factors", "", "", ""))
        rows += [
            (TITLES[name], duration(entry["median_seconds"]), times(entry["ratio"]), "")
            for name, entry in report[key].items()
        ]
    drawn = matrices["inputs"]
    rows.append(
        (f"item-item matrix, {drawn['n_users']:,} users × {drawn['n_items']:,} items", "", "", "")
    )
    rows += [
        (
            f"{TITLES[name]}, {size(matrices[name]['matrix_bytes'])}",
            duration(matrices[name]["seconds"]),
            "",
            f"{size(matrices[name]['bytes'])} above the inputs",
        )
        for name in ("dense.npy", "sparse.npz")
    ]
    return f"{markdown(('', 'time', '× the first', 'memory'), rows)}\n\n{conditions(report)}"


TABLES = {"scorers": scorers}
