"""tqdm, which chooses a bar for a terminal or a notebook."""

from __future__ import annotations

import warnings

from tqdm import TqdmWarning

with warnings.catch_warnings():
    # That a notebook has no widgets, so that its bar is one of text: nobody needs a red box for it.
    warnings.simplefilter("ignore", TqdmWarning)
    from tqdm.auto import tqdm

__all__ = ["tqdm"]
