"""Whether the site works, for load balancers and monitors."""

from datetime import timedelta

from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from work.models import PeriodicRun

# Workers look every second for what is due; one that is busy with a job looks after it.
LATE_AFTER = timedelta(minutes=5)


@login_not_required
@never_cache
@require_safe
def health(request: HttpRequest) -> JsonResponse:
    """Whether the database answers (503 where not), and whether periodic work is done.

    Access: anybody. It says nothing else of the site.
    """
    try:
        is_late = PeriodicRun.objects.filter(next_at__lt=timezone.now() - LATE_AFTER).exists()
    except DatabaseError:
        return JsonResponse({"database": "unavailable"}, status=503)
    return JsonResponse({"database": "ok", "background_work": "late" if is_late else "ok"})
