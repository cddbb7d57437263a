"""Logs, as plain lines or as JSON, each with the request it belongs to."""

import logging
import re
import time
import uuid
from collections.abc import Callable, MutableMapping
from contextvars import ContextVar
from typing import Any

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.http.response import HttpResponseBase

FORMATS = ("plain", "json")
REQUEST_ID = "X-Request-Id"
REQUEST_ID_FORM = re.compile(r"[A-Za-z0-9._-]{8,64}")
# What an address names, and what the logs call it.
NAMED_IN_ADDRESSES = {
    "slug": "study",
    "work_id": "job",
    "job_id": "job",
    "hit_type_id": "hit_type",
    "hit_id": "hit",
    "assignment_id": "assignment",
    "requester_id": "requester",
}

# What an address names that opens something: invitations, links to a new password.
SECRETS_IN_ADDRESSES = ("token", "key")
HIDDEN = "[hidden]"

_secrets: ContextVar[tuple[str, ...]] = ContextVar("secrets", default=())
logger = logging.getLogger("assay.request")

# Django logs requests that it refuses as suspicious here: a wrong Host, a form without end.
REFUSED_REQUESTS = "django.security."
LONGEST_REFUSAL = 300


def shorten_refusals(record: logging.LogRecord) -> bool:
    """Make one short warning of a suspicious request: nothing of the site's failed, and whoever
    sends a thousand of them writes no thousand tracebacks. No line displays a request, whose
    address may have who a participant is, and what opens a study, in it: its id stands beside."""
    record.__dict__.pop("request", None)
    if record.name.startswith(REFUSED_REQUESTS):
        record.levelno, record.levelname = logging.WARNING, "WARNING"
        record.exc_info = record.exc_text = None
        record.msg, record.args = record.getMessage()[:LONGEST_REFUSAL], None
    return True


def logging_settings(*, log_format: str, level: str) -> dict[str, Any]:
    if log_format not in FORMATS:
        raise ImproperlyConfigured(
            f"LOG_FORMAT is '{log_format}'; it must be one of {', '.join(FORMATS)}."
        )
    if level not in logging.getLevelNamesMapping():
        known = ", ".join(name for name in logging.getLevelNamesMapping() if name != "NOTSET")
        raise ImproperlyConfigured(f"LOG_LEVEL is '{level}'; it must be one of {known}.")
    context: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        hide_secrets,
    ]
    renderers: dict[str, list[Any]] = {
        "plain": [
            # Without the values of local variables, among which there are secrets.
            structlog.dev.ConsoleRenderer(
                colors=False, exception_formatter=structlog.dev.plain_traceback
            )
        ],
        "json": [
            structlog.processors.format_exc_info,
            structlog.processors.JSONRenderer(ensure_ascii=False),
        ],
    }
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "all": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": context,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    *renderers[log_format],
                ],
            }
        },
        "filters": {"refusals": {"()": lambda: shorten_refusals}},
        "handlers": {
            "console": {
                "class": "logging.StreamHandler",
                "formatter": "all",
                "filters": ["refusals"],
            }
        },
        # Refusals that a page explains (404, 409) are not for the operator's attention.
        "loggers": {"django.request": {"level": "ERROR"}},
        "root": {"handlers": ["console"], "level": level},
    }


def hide_secrets(logger: object, method: str, event: MutableMapping[str, Any]) -> Any:
    # No line of a request holds the secret that its address named.
    for secret in _secrets.get():
        for name, value in event.items():
            if isinstance(value, str):
                event[name] = value.replace(secret, HIDDEN)
    return event


class RequestLog:
    """Middleware: gives each request an id, which its log lines and its answer bear."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request_id = _request_id(request)
        _secrets.set(())
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        started = time.perf_counter()
        response = self.get_response(request)
        response.headers[REQUEST_ID] = request_id
        logger.info(
            "request",
            extra={
                "method": request.method,
                "path": request.path,
                "status": response.status_code,
                "duration_seconds": round(time.perf_counter() - started, 3),
            },
        )
        return response

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: dict[str, Any]
    ) -> None:
        structlog.contextvars.bind_contextvars(
            **{name: kwargs[part] for part, name in NAMED_IN_ADDRESSES.items() if kwargs.get(part)}
        )
        _secrets.set(tuple(str(kwargs[name]) for name in SECRETS_IN_ADDRESSES if kwargs.get(name)))


def _request_id(request: HttpRequest) -> str:
    named = request.headers.get(REQUEST_ID, "")
    if settings.ALLAUTH_TRUSTED_PROXY_COUNT and REQUEST_ID_FORM.fullmatch(named):
        return named
    return uuid.uuid4().hex
