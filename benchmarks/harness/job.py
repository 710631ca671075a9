"""The job of a suite: what to measure."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from . import environment


@dataclass(frozen=True)
class Job:
    """One run of a suite.

    Attributes
    ----------
    contestants : list of str
        Names from rivals.toml, the reference first, possibly followed by a checkout.
    rounds : int
        Timed rounds after the warm-up.
    inputs : Path
        The folder of the inputs; existing ones are used again.
    smoke : bool
        Whether to use toy sizes.
    case : str
        Only cases whose names begin with this text are run.
    data : Path, optional
        The folder of data that are not part of the project.
    """

    contestants: list[str]
    rounds: int
    inputs: Path
    smoke: bool = False
    case: str = ""
    data: Path | None = None

    @property
    def references(self) -> list[str]:
        """The reference, and the checkout if there is one."""
        return [
            name for name in self.contestants if environment.library(name) == environment.REFERENCE
        ]

    @property
    def turn_seconds(self) -> float:
        """The minimum duration of a contestant's turn."""
        return 0.0 if self.smoke else 0.3

    @cached_property
    def rivals(self) -> dict[str, dict[str, Any]]:
        """The contestants, with their versions or why they are left out; a part of the report."""
        return {name: environment.describe(name) for name in self.contestants}

    @property
    def taking_part(self) -> list[str]:
        return [name for name, entry in self.rivals.items() if "failed" not in entry]

    def call(self, target: str, *arguments: Any) -> Any:
        """Return the result of MODULE:FUNCTION, called in a new process of our environment."""
        return environment.call(environment.REFERENCE, target, *arguments)


class MismatchError(Exception):
    """Two libraries gave different values, so their times must not be compared."""
