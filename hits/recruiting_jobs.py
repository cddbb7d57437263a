"""What is done in the background about recruiters; `hits.jobs` brings it along."""

from __future__ import annotations

import logging

from django.db import InterfaceError, OperationalError
from django.utils.translation import gettext_lazy, ngettext

from annotation.study_jobs import CONNECT_RECRUITER, RECRUIT
from hits.call_limits import call_time, repeated_later
from hits.exceptions import HitsError
from hits.recruited_batches import recruit_in_background
from hits.recruited_bonuses import BONUSES
from hits.recruited_decisions import follow_decisions
from hits.recruited_failures import note_done_since
from hits.recruited_standing import (
    connections_to_follow,
    forget_submissions,
    store_standing,
)
from hits.recruiter_accounts import connect_in_background
from hits.recruiter_api import fetch_standing
from work.execution import RunningJob
from work.registry import INTERACTIVE, MARKETPLACE, register

logger = logging.getLogger(__name__)
# A recruiter is called by the marketplace as often.
FOLLOW_EVERY_SECONDS = 60
CALL_SECONDS = 60


@register(
    RECRUIT,
    label=gettext_lazy("Recruiting"),
    queue=INTERACTIVE,
    refusals=(HitsError,),
    kept=BONUSES,
)
def recruit_participants(running: RunningJob) -> str:
    """Have something done about a batch's study at a recruiter."""
    with repeated_later(), call_time(CALL_SECONDS):
        return recruit_in_background(running)


@register(
    CONNECT_RECRUITER,
    label=gettext_lazy("Connecting the recruiter"),
    queue=INTERACTIVE,
    refusals=(HitsError,),
)
def connect_recruiter(running: RunningJob) -> str:
    """Have a marketplace call a recruiter by a token, or have that forgotten."""
    with repeated_later(), call_time(CALL_SECONDS):
        return connect_in_background(running)


@register(
    "follow_recruiters",
    label=gettext_lazy("Looking how recruiting stands"),
    queue=MARKETPLACE,
    every_seconds=FOLLOW_EVERY_SECONDS,
)
def follow_recruiters(running: RunningJob) -> str:
    """Store how recruiting stands, wherever participants may come."""
    connections = connections_to_follow()
    forget_submissions(connections)
    for connection in connections:
        try:
            with call_time(CALL_SECONDS):
                store_standing(connection, fetch_standing(connection))
                follow_decisions(connection)
                note_done_since(connection)
        except HitsError as refusal:
            # Closed accounts and marketplaces that are away hold up no other connection.
            logger.warning("Recruiting over connection %s is unknown: %s", connection.pk, refusal)
        except (OperationalError, InterfaceError):  # our own database is away
            raise
        except Exception:  # what a marketplace has said that nobody thought of is of it alone
            logger.exception("Recruiting over connection %s is unknown", connection.pk)
    n = len(connections)
    return ngettext("{n} connection looked at.", "{n} connections looked at.", n).format(n=n)
