"""The table of the suite `retrieval`."""

from typing import Any

from harness.format import conditions, duration, markdown, percent, size


def retrieval(report: dict[str, Any]) -> str:
    """Return the cost of ranking in each of the three jobs."""
    inputs, training = report["inputs"], report["training"]
    sweep, large = report["sweep"], report["large"]
    model = f"{inputs['n_users']:,} users × {inputs['n_items']:,} items"
    entries = training["contestants"]
    nobody, *evaluators = entries
    title = f"training ALS, {inputs['n_factors']} factors, {model}"
    rows = [(title, duration(entries[nobody]["median_seconds"]), "")]
    rows += [
        (
            f"the same with `{name}` after each of {training['n_evaluations']} iterations",
            duration(entries[name]["median_seconds"]),
            f"{percent(entries[name]['added_share'], 0)} more",
        )
        for name in evaluators
    ]
    each = duration(sweep["median_checkpoint_seconds"])
    rows.append(
        (
            f"a sweep over {sweep['n_checkpoints']} checkpoints of that size",
            duration(sweep["median_seconds"]),
            f"{each} each, with loading; {size(sweep['median_bytes'])} above the inputs",
        )
    )
    drawn = large["inputs"]
    rows.append(
        (
            f"held-out ranks of {drawn['n_users']:,} users among {drawn['n_items']:,} items",
            duration(large["seconds"]),
            (
                f"{percent(large['share_of_scores'])} of the scores computed; "
                f"{size(large['bytes'])} above the inputs"
            ),
        )
    )
    return f"{markdown(('', 'time', ''), rows)}\n\n{conditions(report)}"


TABLES = {"retrieval": retrieval}
