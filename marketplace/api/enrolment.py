"""Enrolment over HTTP, for what the Requester API lacks: requesters with a key, and workers.

    POST /marketplace-api/v1/requesters   {"name": "Vision lab", "test_funds_usd": "100"}
    POST /marketplace-api/v1/workers      {"username": "ada", "password": "..."}

Both are signed with the operator secret (`operator_signature`); docs/marketplace.md has it all.
"""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.http import HttpRequest, JsonResponse

from marketplace.api.operator_signature import View, operator_signed
from marketplace.api.request_bodies import read_object
from marketplace.exceptions import InvalidParameter, MarketplaceError, NameTaken
from marketplace.money import ledger
from marketplace.money.amounts import parse_amount
from marketplace.people.enrolment import create_worker, issue_access_key


def _answering_errors(view: View) -> View:
    def answer(request: HttpRequest) -> Any:
        try:
            return view(request)
        except NameTaken as error:
            return JsonResponse({"error": str(error), "code": error.code}, status=409)
        except MarketplaceError as error:
            return JsonResponse({"error": str(error), "code": error.code}, status=400)

    return answer


@operator_signed
@_answering_errors
def requesters(request: HttpRequest) -> JsonResponse:
    """Issue a key to the requester of this name, who is enrolled first where unknown.

    Access: whoever holds the operator secret.
    """
    name, funds, display_name = _texts(request, "name", optional=("test_funds_usd", "display_name"))
    if funds is not None and not settings.MARKETPLACE_TEST_FUNDS:
        raise InvalidParameter("This marketplace has no test funds (MARKETPLACE_TEST_FUNDS).")
    deposit_usd = None if funds is None else parse_amount(funds)
    key = issue_access_key(name=name, display_name=display_name or "", deposit_usd=deposit_usd)
    balance_usd = ledger.balance_of(ledger.available_account(key.requester))
    content = {
        "requester": key.requester.name,
        "requester_id": key.requester.public_id,
        "access_key_id": key.access_key_id,
        "secret_access_key": key.secret_access_key,
        "balance_usd": str(balance_usd),
    }
    return JsonResponse(content, status=201)


@operator_signed
@_answering_errors
def workers(request: HttpRequest) -> JsonResponse:
    """Create a worker who can sign in to the worker site.

    Access: whoever holds the operator secret.
    """
    username, password = _texts(request, "username", "password")
    worker = create_worker(username=username, password=password)
    return JsonResponse({"username": username, "worker_id": worker.worker_id}, status=201)


def _texts(request: HttpRequest, *names: str, optional: Sequence[str] = ()) -> list[Any]:
    """These members of the body, which is a JSON object of texts and has no others."""
    body = read_object(request)
    if not all(isinstance(value, str) for value in body.values()):
        raise InvalidParameter("The body is not a JSON object of texts.")
    known = [*names, *optional]
    if unknown := sorted(set(body) - set(known)):
        raise InvalidParameter(f"The body has unknown members: {', '.join(unknown)}.")
    if missing := [name for name in names if name not in body]:
        raise InvalidParameter(f"The body lacks {', '.join(missing)}.")
    return [body.get(name) for name in known]
