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
        """A bar that new values beside it do not draw before its delay is over."""

        def refresh(self, *given: Any, **options: Any) -> Any:
            """Draw the bar."""
            if not self.disable and self.delay > 0 and self._time() < self.start_t + self.delay:
                return None
            return super().refresh(*given, **options)
