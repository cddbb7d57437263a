from datetime import timedelta
from functools import reduce
from importlib import import_module
from operator import or_

from django.conf import settings
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy

from work.contents import sweep_objects
from work.execution import RunningJob
from work.models import Job
from work.registry import MARKETPLACE, job_kinds, register
from work.tasks import delete_taken

DAY = timedelta(days=1)


@register("clean_up", label=gettext_lazy("Cleaning up"), queue=MARKETPLACE, every_seconds=3600)
def clean_up(running: RunningJob) -> str:
    now = timezone.now()
    finished = Job.objects.finished()
    periodic = [kind.name for kind in job_kinds().values() if kind.every_seconds]
    conditions = [Q(kind=kind.name) & kind.kept for kind in job_kinds().values() if kind.kept]
    kept = Job.objects.filter(reduce(or_, conditions, Q(pk=None)))
    days = timedelta(days=settings.WORK_KEEP_DAYS)
    old = finished.filter(finished_at__lt=now - days) if days else finished.none()
    n_jobs = old.exclude(pk__in=kept.order_by().values("pk")).delete()[0]
    n_jobs += (
        finished.of_kind(*periodic)
        .filter(state=Job.State.DONE, finished_at__lt=now - DAY)
        .delete()[0]
    )
    n_messages = delete_taken(before=now - DAY)
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()
    return f"{n_jobs} old jobs and {n_messages} old messages deleted."


@register(
    "sweep_objects",
    label=gettext_lazy("Deleting objects that no row refers to"),
    queue=MARKETPLACE,
    every_seconds=DAY.total_seconds(),
)
def sweep(running: RunningJob) -> str:
    return f"{sweep_objects()} objects deleted."
