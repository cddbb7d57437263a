import time

from django.utils.translation import gettext_lazy

from marketplace import clock
from marketplace.exceptions import MarketplaceError, RecruiterBusy
from marketplace.hits import lifecycle
from marketplace.hits.drafts import delete_closed_drafts
from marketplace.hits.same_person import delete_old_prints
from marketplace.models import RecruitedStudy
from marketplace.money.reconciliation import store_audit
from marketplace.notifications.delivery import send_due, send_due_mail
from marketplace.recruiting.calls import (
    ACT,
    CONNECT,
    call_recruiters,
    delete_old_events,
    follow_all_events,
    perform_action,
    perform_connection,
)
from marketplace.recruiting.files import FETCH_DEMOGRAPHICS, fetch_demographics
from marketplace.recruiting.intents import approve_overdue
from marketplace.recruiting.sessions import settle_sessions
from work.exceptions import JobWaiting
from work.execution import RunningJob
from work.registry import MARKETPLACE, register

EVERY_SECONDS = 60
# Until it is looked again whether another process has done with a recruiter.
PAUSE_SECONDS = 1


@register(
    "sweep_marketplace",
    label=gettext_lazy("Settling what time has done to HITs"),
    queue=MARKETPLACE,
    every_seconds=EVERY_SECONDS,
)
def sweep_marketplace(running: RunningJob) -> str:
    delete_closed_drafts()
    delete_old_prints(clock.now())
    delete_old_events(clock.now())
    n = lifecycle.sweep(clock.now())
    settle_sessions(clock.now())
    approve_overdue()
    return f"{n} HIT{'' if n == 1 else 's'} settled."


@register(
    "send_notifications",
    label=gettext_lazy("Sending notifications"),
    queue=MARKETPLACE,
    every_seconds=EVERY_SECONDS,
)
def send_notifications(running: RunningJob) -> str:
    n_sent = 0
    # Until nothing is due: what came meanwhile did not request a job of its own.
    while n_delivered := send_due(clock.now()) + send_due_mail(clock.now()):
        n_sent += n_delivered
    return f"{n_sent} notification{'' if n_sent == 1 else 's'} delivered."


@register(
    "audit_ledger",
    label=gettext_lazy("Auditing the ledger"),
    queue=MARKETPLACE,
    every_seconds=12 * 3600,
)
def audit_ledger(running: RunningJob) -> str:
    n = store_audit().n_problems
    return f"{n} problem{'' if n == 1 else 's'} found."


@register(
    "call_recruiters",
    label=gettext_lazy("Calling recruiters"),
    queue=MARKETPLACE,
    every_seconds=EVERY_SECONDS,
)
def follow_recruiters(running: RunningJob) -> str:
    called = call_recruiters()
    return " ".join([f"{called.n_followed} sessions followed.", *called.problems])


@register(CONNECT, label=gettext_lazy("Connecting a recruiter"), queue=MARKETPLACE)
def connect_recruiter(running: RunningJob) -> str:
    perform_connection(running.arguments["connection"])
    return "The token was tried."


@register(ACT, label=gettext_lazy("Calling a recruiter"), queue=MARKETPLACE)
def act_on_recruited_study(running: RunningJob) -> str:
    job, arguments = running.job, running.arguments
    is_last_try = job.attempts >= job.max_attempts
    try:
        perform_action(arguments["study"], arguments["number"], is_last_try=is_last_try)
    except RecruiterBusy as busy:
        time.sleep(PAUSE_SECONDS)
        raise JobWaiting from busy
    return "Done, or the study says why not."


@register(
    "follow_recruiter_events",
    label=gettext_lazy("Following news of recruiters"),
    queue=MARKETPLACE,
)
def follow_recruiter_events(running: RunningJob) -> str:
    n = follow_all_events()
    return f"{n} change{'' if n == 1 else 's'} followed."


@register(
    FETCH_DEMOGRAPHICS,
    label=gettext_lazy("Asking a recruiter for demographics"),
    queue=MARKETPLACE,
    refusals=(MarketplaceError,),
)
def ask_for_demographics(running: RunningJob) -> str:
    study = (
        RecruitedStudy.objects.select_related("connection", "requester")
        .filter(pk=running.arguments["study"])
        .first()
    )
    n = fetch_demographics(study=study) if study else 0
    return f"Demographics of {n} participation{'' if n == 1 else 's'} are kept."
