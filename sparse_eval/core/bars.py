"""tqdm's bar for a terminal or a notebook, which keeps to its delay."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tqdm import TqdmWarning

with warnings.catch_warnings():
    # That a notebook has no widgets, so that its bar is one of text: nobody needs a red box for it.
    warnings.simplefilter("ignore", TqdmWarning)
    from tqdm.auto import tqdm as _tqdm

__all__ = ["tqdm"]

if TYPE_CHECKING:
    tqdm = _tqdm
else:

    class tqdm(_tqdm):  # noqa: N801 - as it is known
        """A bar that new values beside it do not draw before its delay is over.

        One that is not shown leaves the process as it is: tqdm would start a thread for it, and
        settle how processes are started.
        """

        def __new__(cls, *given: Any, **options: Any) -> Any:  # noqa: D102
            return object.__new__(cls) if options.get("disable") else super().__new__(cls)

        def __init__(self, iterable: Any = None, **options: Any) -> None:
            if not options.get("disable"):
                super().__init__(iterable, **options)
                return
            self.iterable, self.disable, self.leave = iterable, True, False
            self.n, self.total = options.get("initial", 0), options.get("total")

        def refresh(self, *given: Any, **options: Any) -> Any:
            """Draw the bar."""
            if not self.disable and self.delay > 0 and self._time() < self.start_t + self.delay:
                return None
            return super().refresh(*given, **options)
