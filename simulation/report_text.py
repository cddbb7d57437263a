"""Estimates with their intervals in a line of text, as reports of commands print them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def estimate(name: str, one: Mapping[str, Any]) -> str:
    """A value with its limits and, where one is undefined, the reason."""
    reason = f" ({one['reason']})" if one.get("reason") else ""
    limits = f"[{number(one['ci_low'])}, {number(one['ci_high'])}]"
    return f"{name}: {number(one['value'])} {limits}{reason}"


def number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"
