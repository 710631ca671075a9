"""What a suite is asked to measure."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import environment


@dataclass(frozen=True)
class Job:
    """One run of a suite.

    Attributes
    ----------
    contestants : list of str
        Names from rivals.toml, the reference first; behind it perhaps a checkout.
    rounds : int
        Timed rounds after the warm-up.
    inputs : Path
        The folder of what is measured with; what is there already is used again.
    smoke : bool
        Whether sizes are those of toys.
    case : str
        What the names of the cases begin with; others are left out.
    data : Path, optional
        The folder of data that the project does not hold.
    """

    contestants: list[str]
    rounds: int
    inputs: Path
    smoke: bool = False
    case: str = ""
    data: Path | None = None

    @property
    def references(self) -> list[str]:
        """The reference, and the checkout beside it if there is one."""
        return [
            name for name in self.contestants if environment.library(name) == environment.REFERENCE
        ]

    @property
    def turn_seconds(self) -> float:
        """How long a contestant's turn lasts at least."""
        return 0.0 if self.smoke else 0.3

    def describe(self) -> dict[str, Any]:
        return {name: environment.describe(name) for name in self.contestants}


class MismatchError(Exception):
    """Two libraries gave different values, so their times must not be compared."""
