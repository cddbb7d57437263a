"""How many requests a minute a token or a person may make."""

from __future__ import annotations

import time

from django.conf import settings
from django.core.cache import cache
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle
from rest_framework.views import APIView

from console.api.authentication import token_of

MINUTE_SECONDS = 60


class RequestsAMinute(BaseThrottle):
    """Counts in the cache that all processes share, writes apart from reads; 0 is no limit."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Count the request, and say whether it is one of those that are allowed."""
        is_read = request.method in SAFE_METHODS
        most = settings.API_READS_PER_MINUTE if is_read else settings.API_WRITES_PER_MINUTE
        if not most:
            return True
        minute = int(time.time()) // MINUTE_SECONDS
        key = f"api:{holder_of(request)}:{'reads' if is_read else 'writes'}:{minute}"
        n_before: int = cache.get(key, 0)
        if n_before >= most:
            return False
        # Two at once may count as one: the limit is for kindness, not for money.
        cache.set(key, n_before + 1, timeout=2 * MINUTE_SECONDS)
        return True

    def wait(self) -> float:
        """Until the next minute begins."""
        return MINUTE_SECONDS - time.time() % MINUTE_SECONDS


def holder_of(request: Request) -> str:
    """Who makes requests, in a word: a token, or a person by session."""
    token = token_of(request)
    return f"token-{token.pk}" if token else f"user-{request.user.pk}"
