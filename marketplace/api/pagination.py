"""Pages of a list. Every page that isn't empty has a NextToken and the one after
the last is empty, as at Amazon: clients loop until then."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.core.signing import BadSignature, Signer
from django.db.models import Model, QuerySet

from marketplace.api.registry import Parameters
from marketplace.exceptions import InvalidParameter

Row = TypeVar("Row", bound=Model)

SALT = "marketplace.paging"


def next_token(scope: str, position: Any) -> str:
    """An opaque token for what comes after this position in this list."""
    return _signer(scope).sign_object(position, compress=True)


def position_of(token: str | None, scope: str) -> Any:
    """The position a token of the same list stands for; None without a token."""
    if token is None:
        return None
    try:
        return _signer(scope).unsign_object(token)
    except (BadSignature, ValueError) as error:
        raise InvalidParameter("NextToken is not a token of this list.") from error


def page_of(
    rows: QuerySet[Row],
    scope: str,
    parameters: Parameters,
    *,
    member: str,
    describe: Callable[[Row], dict[str, Any]],
) -> dict[str, Any]:
    """One page of a list, in the order its rows were made."""
    position = position_of(parameters["NextToken"], scope)
    if position is not None:
        rows = rows.filter(pk__gt=position)
    page = list(rows.order_by("pk")[: parameters["MaxResults"]])
    output = {"NumResults": len(page), member: [describe(row) for row in page]}
    return output | ({"NextToken": next_token(scope, page[-1].pk)} if page else {})


def _signer(scope: str) -> Signer:
    """The digest that distinguishes a list from others: a token has 255 characters at most."""
    return Signer(salt=f"{SALT}.{scope}")
