"""Run the command line as ``python -m sparse_eval``."""

from .cli import main

main()
