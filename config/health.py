from collections.abc import Callable
from functools import cache

from django.contrib.auth.decorators import login_not_required
from django.core.cache import cache as shared_cache
from django.db import DatabaseError, connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from redis.exceptions import RedisError

from accounts.models import Membership, User
from annotation.models import Study
from hits.pages.studies import studies
from marketplace.web.worker.access import worker_of
from work.periodic import is_late
from work.tasks import ping

READY_KEY = "ready"


@login_not_required
@never_cache
@require_safe
def health(request: HttpRequest) -> JsonResponse:
    """Whether the database answers (503 where not), and whether periodic work is done.

    Access: anybody. It says nothing else of the site.
    """
    try:
        late = is_late(timezone.now())
    except DatabaseError:
        return JsonResponse({"database": "unavailable"}, status=503)
    return JsonResponse({"database": "ok", "background_work": "late" if late else "ok"})


@login_not_required
@never_cache
@require_safe
def readiness(request: HttpRequest) -> JsonResponse:
    """Whether requests may be sent to this process (503 where not): all that it needs answers, and
    the database's tables are those of its code.

    Access: anybody. It names no address, and no error in its words.
    """
    parts = {
        "database": _state(_has_its_tables),
        "cache": _state(_keeps_values),
        "queue": _state(ping),
    }
    return JsonResponse(parts, status=200 if set(parts.values()) == {"ok"} else 503)


def _state(check: Callable[[], str]) -> str:
    try:
        return check()
    except (DatabaseError, RedisError, OSError):
        return "unavailable"


def _has_its_tables() -> str:
    # Those of a newer version may be there too: machines are upgraded one after another.
    applied = MigrationRecorder(connection).applied_migrations()
    return "ok" if _migrations_of_the_code() <= set(applied) else "not migrated"


@cache
def _migrations_of_the_code() -> frozenset[tuple[str, str]]:
    return frozenset(MigrationLoader(None).disk_migrations)


def _keeps_values() -> str:
    shared_cache.set(READY_KEY, True, timeout=60)
    return "ok" if shared_cache.get(READY_KEY) else "unavailable"


def front_page(request: HttpRequest) -> HttpResponse:
    """Access: signed in; a worker without a team or a study comes to the marketplace."""
    user = request.user
    if isinstance(user, User) and worker_of(request) is not None and not _researches(user):
        return redirect("marketplace:groups")
    return studies(request)


def _researches(user: User) -> bool:
    return (
        user.is_superuser
        or Membership.objects.filter(user=user).exists()
        or Study.objects.visible_to(user).exists()
    )
