"""Format numbers, p-values and shares for the report."""

from __future__ import annotations


def format_number(value: float | None) -> str:
    """Return a number with four decimals, or three significant digits where that shows more."""
    if value is None or value != value:
        return "–"
    text = f"{value:.4f}" if 1e-4 <= abs(value) < 1e3 or value == 0 else f"{value:.3g}"
    return text.replace("-", "\N{MINUS SIGN}")


def format_p(p: float | None) -> str:
    """Return what follows "p" in a sentence: "= 0.012" or "< 0.001"."""
    if p is None:
        return "unknown"
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def format_share(part: float, whole: float) -> str:
    """Return a share in per cent."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 1 or percent == 0 else f"{percent:.1g} %"
