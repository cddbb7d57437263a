"""What pages with requesters' content may load, beyond this site's own files."""

from collections.abc import Callable
from typing import ParamSpec, cast

from csp.constants import SELF
from csp.decorators import csp_replace, csp_update
from django.conf import settings
from django.http import HttpResponse

P = ParamSpec("P")
# Pictures, sounds and pages of requesters may be anywhere; over HTTPS no browser takes others.
SCHEMES = ["https:"] if settings.HTTPS else ["https:", "http:"]


def with_requesters_content(view: Callable[P, HttpResponse]) -> Callable[P, HttpResponse]:
    """A page on which a task stands: in a frame, or as a form with pictures and sounds."""
    policy = {"img-src": SCHEMES, "media-src": SCHEMES, "frame-src": [SELF, *SCHEMES]}
    guarded = csp_update(policy)(view)  # type: ignore[arg-type]
    return cast(Callable[P, HttpResponse], guarded)


def in_any_frame(view: Callable[P, HttpResponse]) -> Callable[P, HttpResponse]:
    """A page that a requester's page, wherever that is, may have in a frame."""
    guarded = csp_replace({"frame-ancestors": None})(view)  # type: ignore[arg-type]
    return cast(Callable[P, HttpResponse], guarded)
