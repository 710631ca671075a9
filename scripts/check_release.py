"""Check that a tag can be published: ``scripts/check_release.py v1.2.3 https://github.com/OWNER/NAME``.

The tag is the version of the package, the changelog says when it was released and what is in it,
and the package names the repository that publishes it.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def faults(tag: str, repository: str, root: Path = ROOT) -> list[str]:
    """Return what keeps a tag of a repository from being published."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version, source = project["version"], project["urls"]["Source"]
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = rf"^## {re.escape(version)} - \d{{4}}-\d\d-\d\d$"
    found = []
    if tag != f"v{version}":
        found.append(f"the tag is {tag}, and the version in pyproject.toml {version}")
    if not re.search(heading, changelog, re.M):
        found.append(f"CHANGELOG.md has no heading '## {version} - YYYY-MM-DD'")
    if repository != source:
        found.append(f"this is {repository}, and pyproject.toml names {source}")
    return found


if __name__ == "__main__":
    found = faults(*sys.argv[1:])
    print(*found, sep="\n", file=sys.stderr)
    sys.exit(bool(found))
