"""Numbers as a page says them."""

from __future__ import annotations

__all__ = ["number", "p_value", "share"]


def number(value: float | None) -> str:
    """Return a number with as many digits as a reader can use."""
    if value is None or value != value:
        return "–"
    text = f"{value:.4f}" if 1e-4 <= abs(value) < 1e3 or value == 0 else f"{value:.3g}"
    return text.replace("-", "\N{MINUS SIGN}")


def p_value(p: float | None) -> str:
    """Return a p-value as it stands behind "p"."""
    if p is None:
        return "unknown"
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def share(part: float, whole: float) -> str:
    """Return a share in per cent."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 1 or percent == 0 else f"{percent:.1g} %"
