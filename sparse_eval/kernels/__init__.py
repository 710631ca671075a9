"""All numba functions of the package: plain loops that read arrays and write arrays.

They import only numba, llvmlite and numpy, and release the interpreter's lock. They never raise: a
kernel writes the position of a fault, and its caller raises the error.
"""

import os
import re

from ..errors import InvalidDataError

if re.fullmatch(r"\s*(-[0-9]+|\+?0+)\s*", _given := os.environ.get("NUMBA_NUM_THREADS", "")):
    # Otherwise, the import of numba fails with an error that does not name the variable.
    raise InvalidDataError(
        f"the environment variable NUMBA_NUM_THREADS is {_given!r}; set it to a whole number of at "
        "least 1, or unset it"
    )
