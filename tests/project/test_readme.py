"""What the README and the documentation say, run, and what they link to is there."""

import re
import shlex
from pathlib import Path
from urllib.parse import unquote

import pytest
import typer

from sparse_eval.cli.commands import app

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
#: Pages whose examples stand alone, and those whose examples follow one another.
ALONE = [README, ROOT / "docs" / "index.md"]
GUIDE = sorted([*(ROOT / "docs/guide").glob("*.md"), *(ROOT / "docs/coming_from").glob("*.md")])


def examples(page):
    return re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)


#: Examples that run after one another, by page, or by page and number.
CASES = {f"{page.stem}-{n}": [code] for page in ALONE for n, code in enumerate(examples(page))}
GUIDES = {page.stem: codes for page in GUIDE if (codes := examples(page))}
CASES |= GUIDES


def test_there_are_examples():
    assert len(examples(README)) == 3
    assert len(CASES) >= 3 + 10


@pytest.mark.filterwarnings("ignore:metrics among sampled candidates")
@pytest.mark.filterwarnings("ignore:OpenBLAS is configured")  # by implicit's own constructor
@pytest.mark.slow  # where kernels run as Python
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * (name in GUIDES)) for name in CASES]
)
def test_examples_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in CASES[name]:
        exec(compile(code, "example", "exec"), names)  # noqa: S102 - our own page


#: A mean and its interval in a line of results, after the name of the metric.
OF_MODEL = re.compile(r"^(\S+) +(\d\.\d+) +\d\.\d+ to \d\.\d+", re.M)


def without_the_model(text):
    """Return a table without what training decides, which depends on the processor."""
    return re.sub(" +", " ", re.sub("-+", "-", OF_MODEL.sub(r"\1", text)))


@pytest.mark.slow
def test_the_readme_shows_the_output_of_its_first_example(capsys):
    found = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README.read_text(), re.S)
    assert found
    exec(compile(found[1], "example", "exec"), {})  # noqa: S102 - our own page
    printed = capsys.readouterr().out
    assert without_the_model(printed) == without_the_model(found[2])
    for text in (printed, found[2]):
        means = OF_MODEL.findall(text)
        popular = re.findall(r"(\d\.\d+)$", text, re.M)
        assert [name for name, _ in means] == ["ndcg@10", "recall@20"]
        assert all(float(mean) > float(of) for (_, mean), of in zip(means, popular, strict=True))


#: What a shell replaces by the output of a command.
SUBSTITUTED = re.compile(r"\$\(.*?\)")


def test_commands_are_those_of_the_command_line():
    group = typer.main.get_command(app)
    read = 0
    for page in [*ALONE, *GUIDE]:
        for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(), re.M | re.S):
            for line in re.findall(r"^sparse-eval (.+)$", block, re.M):
                words = shlex.split(SUBSTITUTED.sub("x", line).partition(" > ")[0], comments=True)
                name, command, rest = group.resolve_command(typer.Context(group), words)
                command.make_context(name, rest)  # an option that does not exist is an error
                read += 1
    assert read >= 30


def places(page):
    """Return where links may lead in a page, as GitHub and Sphinx name its headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "page", [*ALONE, ROOT / "CONTRIBUTING.md", *GUIDE], ids=lambda page: page.stem
)
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$|`[^`\n]+`", "", page.read_text(), flags=re.M | re.S)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if link.startswith("https://"):
            continue
        path, _, place = unquote(link).partition("#")
        aim = (page.parent / path).resolve() if path else page
        assert aim.exists(), f"{page.name} links to {link}"
        assert not place or place in places(aim), f"{page.name} links to {link}"
