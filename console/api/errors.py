"""Every error under /api/ is JSON of one form: what is wrong, a code for programs, which fields."""

from collections.abc import Callable, Container, Iterator
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler

from accounts.exceptions import RoleTooSmall
from error_codes import CodedError, CorrectableError
from presentation.numbers import group_values

API = "/api/"
GENERAL = "errors"


class Conflict(exceptions.APIException):
    """What was asked for does not fit what is there."""

    status_code = HTTPStatus.CONFLICT
    default_code = "conflict"


class Unprocessable(exceptions.APIException):
    """The request is understood, and contradicts an earlier one."""

    status_code = HTTPStatus.UNPROCESSABLE_ENTITY
    default_code = "unprocessable"


class ComputingFailed(exceptions.APIException):
    """The background worker could not compute what was asked for from what there is."""

    status_code = HTTPStatus.CONFLICT
    default_code = "computing_failed"


class Refusal(exceptions.APIException):
    """An error of one of our apps; the reason tells the cases of its code apart."""

    status_code = HTTPStatus.BAD_REQUEST
    reason = ""


def answer_error(error: Exception, context: dict[str, Any]) -> Response | None:
    """The answer to an error; None for one that nobody expected, which Django logs."""
    if isinstance(error, Http404):
        # Only a text that a person wrote; Django's own names a model.
        is_our_text = bool(error.args) and not str(error.args[0]).startswith("No ")
        error = exceptions.NotFound(*error.args if is_our_text else ())
    elif isinstance(error, PermissionDenied):
        error = exceptions.PermissionDenied(*error.args)
    elif isinstance(error, CorrectableError):
        error = _refusal(error, context)
    response = exception_handler(error, context)
    if response is not None and isinstance(error, exceptions.APIException):
        response.data = _body(error)
    return response


def _refusal(error: CodedError, context: dict[str, Any]) -> exceptions.APIException:
    if isinstance(error, RoleTooSmall):
        return exceptions.PermissionDenied(str(error), code=error.kind)
    held: Container[str] = getattr(context["request"]._request, "permissions", frozenset())
    refusal = Refusal(error.text_for(held), code=error.kind)
    refusal.reason = error.code
    return refusal


def _body(error: exceptions.APIException) -> dict[str, Any]:
    if isinstance(error, exceptions.ValidationError):
        fields = group_values((name or GENERAL, text) for name, text in _messages(error.detail))
        first = next(iter(fields.items()), (GENERAL, ["Not valid."]))
        return {
            "detail": first[1][0] if first[0] == GENERAL else f"{first[0]}: {first[1][0]}",
            "code": "invalid",
            "errors": fields,
        }
    code = error.get_codes()
    code = code if isinstance(code, str) else "error"
    body = {"detail": str(error.detail), "code": code}
    reason = error.reason if isinstance(error, Refusal) else code
    return body if reason == code else body | {"reason": reason}


def _messages(detail: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Each message with the path of its field: `items.0.name`."""
    if isinstance(detail, dict):
        for name, inner in detail.items():
            own = "" if name == "non_field_errors" else str(name)
            yield from _messages(inner, ".".join(filter(None, [path, own])))
    elif isinstance(detail, list):
        for position, inner in enumerate(detail):
            yield from _messages(
                inner, path if isinstance(inner, str) else f"{path}.{position}".lstrip(".")
            )
    else:
        yield path, str(detail)


def answer_in_json(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: what goes wrong before or beside a view of the API is JSON as well, and no
    answer of the API is stored."""

    def answer(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        if not request.path.startswith(API):
            return response
        is_json = response.headers.get("Content-Type", "").startswith("application/json")
        if response.status_code >= HTTPStatus.BAD_REQUEST and not is_json:
            response = _in_json(response)
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response

    return answer


def _in_json(response: HttpResponseBase) -> JsonResponse:
    status = HTTPStatus(response.status_code)
    answer = JsonResponse(
        {"detail": f"{status.phrase}.", "code": status.name.lower()}, status=status
    )
    for name, value in response.headers.items():
        # Policies stay; what described the page goes with it.
        if not name.startswith("Content-") or name.startswith("Content-Security-"):
            answer.headers[name] = value
    return answer
