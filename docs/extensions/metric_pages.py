"""Write a page for each metric from the registry, before Sphinx reads the pages."""

import math
import re
import tomllib
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.cli.metrics import facts_of
from sparse_eval.metrics import CONVENTIONS, REGISTRY, STANDARD, Choice, Definition

METRICS = Path(__file__).parents[1] / "metrics"

#: The formula of each metric in LaTeX, and the meaning of letters that no other metric has.
FORMULAS: dict[str, str] = tomllib.loads((METRICS / "formulas.toml").read_text(encoding="utf-8"))

#: The letters of the formulas: a pattern that finds each one, and its meaning.
LETTERS = {
    r"\bi_(?:r|q|\{)": "$i_r$ is the item at rank $r$",
    r"\bg_(?:r|q|\{\(r)": "$g_r$ is the gain of the item at rank $r$",
    r"\bg_\{\(r": "$g_{(r)}$ is the $r$-th largest gain of the user",
    r"\bh_(?:r|q)": "$h_r$ is 1 if the item at rank $r$ is relevant, otherwise 0",
    r"(?<![A-Za-z\\])n(?![A-Za-z_])": "$n$ is the user's number of relevant items",
    r"(?<![A-Za-z\\])L(?![A-Za-z])": "$L$ is the length of the list",
    r"(?<![A-Za-z\\])N(?![A-Za-z])": "$N$ is the number of items",
    r"(?<![A-Za-z\\])C(?![A-Za-z_])": "$C$ is the user's number of candidates",
    r"(?<![A-Za-z\\])H(?![A-Za-z_])": "$H$ is the number of hits in the list",
    r"\|U\||\bU_": "$U_i$ are the users with item $i$ in training, and $U$ all users",
    r"\bc_(?:i|\{\(i)": "$c_i$ is the number of lists with item $i$",
    r"\bp_\{i_r": "$p_i$ is the propensity of item $i$",
    r"\bG_u": "$G_u$ are the groups of the user's relevant items",
    r"\bc_g\(": "$c_g(r)$ is the number of hits of group $g$ up to rank $r$",
}

#: The value of each metric in the example, written out.
BY_HAND: dict[str, str] = tomllib.loads((METRICS / "by_hand.toml").read_text(encoding="utf-8"))

#: The facts shown by the command line that are in the table of a metric's page.
FACTS = {"also called", "values", "range", "needs", "expectation over tied items"}

#: The example of every page: three users, six items.
LISTS = [[4, 0, 2, 5], [1, 3, 5, 0], [5, 3, 4, -1]]
GAINS = [[0, 0, 2, 0, 1, 0], [0, 0, 0, 1, 0, 0], [0, 0, 0, 1, 0, 1]]
TRAIN = [[0, 1, 0, 1, 0, 0], [0, 0, 1, 0, 1, 0], [1, 1, 1, 0, 0, 0]]
ITEMS: list[dict[str, Any]] = [
    {},
    {"groups": ["a", "a", "b", "b", "a", "b"]},
    {"vectors": [[1, 0], [1, 1], [0, 1], [0, 2], [2, 1], [1, 2]]},
    {"propensity": [0.9, 0.8, 0.5, 0.4, 0.7, 0.2]},
]
EXAMPLE = """\
There are three users and the items 0 to 5:

| | recommended | relevant | in training |
|---|---|---|---|
| user 1 | 4, 0, 2, 5 | 2 (gain 2), 4 | 1, 3 |
| user 2 | 1, 3, 5, 0 | 3 | 2, 4 |
| user 3 | 5, 3, 4 | 3, 5 | 0, 1, 2 |

Items 0, 1 and 4 belong to group a, the others to group b.
"""


def write_pages(_app: Any = None) -> None:
    folder = METRICS / "generated"
    folder.mkdir(exist_ok=True)
    for name, definition in REGISTRY.items():
        write(folder / f"{name}.md", page(definition))


def write(path: Path, text: str) -> None:
    """Write a file unless it is unchanged, so that Sphinx reads only changed files again."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def link_names(_app: Any, name: str, source: list[str]) -> None:
    """Link each row of the table of all metrics to the page of its metric."""
    if name == "metrics/index":
        source[0] = re.sub(
            r"^\| (\w+)(?=[\[@ ])", r"| [\1](generated/\1.md)", source[0], flags=re.M
        )
        source[0] = source[0].replace("| [metric](generated/metric.md)", "| metric")


def page(definition: Definition) -> str:
    parts = [
        f"# {definition.name}",
        definition.plain,
        f"{sentence(definition.description)} Written `{definition.spelling}`.",
        f"$$\n{FORMULAS[definition.name].strip()}\n$$",
        letters(FORMULAS[definition.name]),
        facts(definition),
        options(definition),
        conventions(definition),
        example(definition),
        by_hand(definition),
        call(definition),
    ]
    if definition.source:
        parts += ["## References", "\n".join(f"- {source}" for source in sources(definition))]
    return "\n\n".join(part for part in parts if part) + "\n"


def letters(formula: str) -> str:
    """Return a sentence about the letters of a formula."""
    meanings = [meaning for pattern, meaning in LETTERS.items() if re.search(pattern, formula)]
    return f"Here, {'; '.join(meanings)}." if meanings else ""


def sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def sources(definition: Definition) -> list[str]:
    return [linked(source) for source in definition.source.split("; ")]


def linked(source: str) -> str:
    before, doi, number = source.partition("doi:")
    return f"{before}[doi:{number}](https://doi.org/{number})" if doi else source


def facts(definition: Definition) -> str:
    """Return the facts shown by `sparse-eval metrics NAME` that have no section of the page."""
    rows = [(name, value) for name, value in facts_of(definition) if name in FACTS]
    rows.append(("better", "higher" if definition.higher_is_better else "lower"))
    return table(("property", "value"), rows)


def options(definition: Definition) -> str:
    if not definition.options:
        return ""
    rows = [
        (
            f"`{option.name}`",
            " · ".join(f"`{value.strip()}`" for value in option.allowed.split("|")),
            option.description.replace("|", "&#124;"),
        )
        for option in definition.options
    ]
    intro = "## Options\n\nThe first value is the default.\n\n"
    return intro + table(("option", "values", "meaning"), rows)


def conventions(definition: Definition) -> str:
    """Return the options of this metric that conventions of other libraries set."""
    rows = [
        (
            f"`{convention.name}`",
            convention.library,
            ", ".join(f"`{option}={value}`" for option, value in given.items()),
        )
        for convention in CONVENTIONS.values()
        if convention is not STANDARD and (given := convention.options.get(definition.name))
    ]
    others = (
        "Libraries may also differ in users, ties or ideal lists: "
        "[each convention](../../guide/conventions.md) has a page."
    )
    if not rows:
        return f"## Conventions\n\nNo convention sets options of this metric. {others}"
    intro = (
        "## Conventions\n\n`convention=` sets these options of this metric. The conventions of "
        f"other libraries set none. {others}\n\n"
    )
    return intro + table(("convention", "library", "options"), rows)


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def example(definition: Definition) -> str:
    """Return the values of the metric for the users, for each value of each of its options."""
    usual = default_spelling(definition)
    name, at, cutoff = usual.partition("@")
    chosen = [
        f"{name}({option.name}={value}){at}{cutoff}"
        for option in definition.options
        if isinstance(option, Choice)
        for value in option.values[1:]
    ]
    spellings = [usual, *chosen]
    rows = [
        f"| `{spelling}` | {' | '.join(values)} |"
        for spelling in spellings
        if (values := evaluated(spelling)) is not None
    ]
    heading = ["| | user 1 | user 2 | user 3 | all |", "|---|--:|--:|--:|--:|"]
    return "\n".join(["## Example", "", EXAMPLE, *heading, *rows])


def by_hand(definition: Definition) -> str:
    """Return the arithmetic of one value of the example."""
    spelling = default_spelling(definition)
    values = evaluated(spelling)
    whose = "user 1" if values and values[0] else "all users"
    code = BY_HAND[definition.name].strip()
    return f"`{spelling}` of {whose} by hand:\n\n```python\n{code}\n```"


def call(definition: Definition) -> str:
    """Return the call in Python that gives the values of the example."""
    spelling = default_spelling(definition)
    for items in ITEMS:
        if result(spelling, items) is not None:
            break
    given = "".join(f", item_data=se.ItemData({name}={value})" for name, value in items.items())
    code = f"""\
import sparse_eval as se
from scipy.sparse import csr_matrix

lists = se.Rankings.from_topk({LISTS})
relevant = csr_matrix({GAINS})
train = csr_matrix({TRAIN})
ev = se.evaluate(lists, relevant, "{spelling}", train=train{given})"""
    return f"In Python, with `ev.per_user` and `ev.mean()`:\n\n```python\n{code}\n```"


def default_spelling(definition: Definition) -> str:
    return definition.name if definition.cutoff == "none" else f"{definition.name}@3"


def evaluated(spelling: str) -> list[str] | None:
    """Return the values of the example, or None if it lacks an input of the metric."""
    for items in ITEMS:
        ev = result(spelling, items)
        if ev is not None:
            if math.isnan(mean := ev[ev.keys()[0]]):
                return None
            users = [f"{value:.4g}" for value in ev.per_user.to_numpy().ravel()]
            return [*(users or [""] * len(LISTS)), f"{mean:.4g}"]
    return None


def result(spelling: str, items: dict[str, Any]) -> se.Evaluation | None:
    """Return the evaluation of the example, or None if the metric needs other data of items."""
    lists, truth, train = se.Rankings.from_topk(LISTS), csr_matrix(GAINS), csr_matrix(TRAIN)
    data = se.ItemData(**items) if items else None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings about a small example
            return se.evaluate(lists, truth, spelling, train=train, item_data=data)
    except se.errors.InvalidMetricError:
        return None


def setup(app: Any) -> dict[str, bool]:
    app.connect("builder-inited", write_pages)
    app.connect("source-read", link_names)
    return {"parallel_read_safe": True}
