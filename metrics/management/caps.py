"""The options by which a command holds its judges to a cap."""

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.management.base import CommandParser

from metrics.exceptions import ParameterRefused
from metrics.study_judges import Caps


def add_caps(parser: CommandParser) -> None:
    """Let a person cap what the command's judges spend together."""
    parser.add_argument(
        "--max-requests", type=int, metavar="N", help="the most that judges may send"
    )
    parser.add_argument("--max-usd", metavar="USD", help="the most that judges may cost")


def caps_of(options: Mapping[str, Any]) -> Caps:
    """The caps asked for, or ParameterRefused."""
    max_usd = options["max_usd"]
    try:
        return Caps(options["max_requests"], None if max_usd is None else Decimal(max_usd))
    except InvalidOperation as error:
        message = f"--max-usd must be a number, got '{max_usd}'."
        raise ParameterRefused(message, code="not_a_number") from error
