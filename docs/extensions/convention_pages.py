"""Write a page for each convention from the registry, before Sphinx reads the pages."""

import warnings
from pathlib import Path
from typing import Any

from metric_pages import EXAMPLE, GAINS, LISTS, TRAIN, table, write
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.metrics import CONVENTIONS, STANDARD, Convention

FOLDER = Path(__file__).parents[1] / "conventions"
#: The page of the guide that has the table of all conventions.
GUIDE = "guide/conventions"

#: The metrics in the example of a page, if the library has them.
METRICS = ("precision@3", "recall@3", "hit_rate@3", "mrr@3", "map@3", "ndcg@3", "dcg@3", "auc")
CALL = """\
## How to use it

```python
ev = se.evaluate(lists, relevant, "ndcg@10", convention="{name}")
ev = se.evaluate_model(model, holdout, "ndcg@10", convention="{name}")
```

```console
sparse-eval evaluate recs.parquet truth.parquet -m ndcg@10 --convention {name}
```
"""


def write_pages(_app: Any = None) -> None:
    FOLDER.mkdir(exist_ok=True)
    for rules in CONVENTIONS.values():
        if rules is not STANDARD:
            write(FOLDER / f"{rules.name}.md", page(rules))


def page(rules: Convention) -> str:
    differences = [[cell.replace("|", "&#124;") for cell in row] for row in rules.differences()]
    intro = (
        f'`convention="{rules.name}"` counts as {rules.library} does. The table has all '
        "differences from [our definitions](../guide/conventions.md#what-is-counted-how)."
    )
    parts = [
        f"# {rules.name}",
        intro,
        table(("difference", rules.name, "standard"), differences),
        CALL.format(name=rules.name),
        example(rules),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def example(rules: Convention) -> str:
    """Return the means of the same lists by our definitions and by the library's."""
    lists, truth = se.Rankings.from_topk(LISTS), csr_matrix(GAINS)
    train = csr_matrix(TRAIN)
    rows = []
    for metric in METRICS:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings about a small example
                means = [
                    se.evaluate(lists, truth, metric, train=train, convention=name)[metric]
                    for name in (None, rules.name)
                ]
        except se.errors.InvalidMetricError:  # not reproduced, or only without a cut-off
            continue
        rows.append((f"`{metric}`", *(f"{mean:.4g}" for mean in means)))
    return "\n\n".join(
        ["## Example", EXAMPLE.strip(), table(("mean", "standard", rules.name), rows)]
    )


def link_names(_app: Any, name: str, source: list[str]) -> None:
    """Link each row of the table of all conventions to the page of its convention."""
    if name != GUIDE:
        return
    for rules in CONVENTIONS.values():
        if rules is not STANDARD:
            link = f"[{rules.name}](../conventions/{rules.name}.md)"
            source[0] = source[0].replace(f"\n| {rules.name} ", f"\n| {link} ")
    source[0] += "\n```{toctree}\n:hidden:\n:glob:\n\n../conventions/*\n```\n"


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    app.connect("source-read", link_names)
    return {"parallel_read_safe": True}
