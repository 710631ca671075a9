"""Charts of evaluations, and a self-contained HTML report. Needs the extra ``[report]``."""

from ..report import plots
from .page import write_report

__all__ = ["plots", "write_report"]
