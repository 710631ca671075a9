"""What is shown to people: charts, and a page with all of them. Needs the extra ``[report]``."""

from ..report import plots
from .page import write_report

__all__ = ["plots", "write_report"]
