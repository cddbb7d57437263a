"""A requester's connections to recruiters that have an API: made with a token, called by it.

A token in a request is only offered by it: a background job tries it, and then it replaces the one
before, or is deleted. One process at a time calls an account: two would draft, publish and charge
twice. Its turn is a lease on the connection's row, by the machine's time, so that it ends by itself
if the process is killed.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta
from types import TracebackType
from typing import Self
from uuid import uuid4

from django.conf import settings
from django.core.cache import cache
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy

from encryption import decrypt, encrypt
from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import InvalidParameter, RecruiterBusy, require
from marketplace.models import Intent, RecruiterConnection, Requester
from marketplace.recruiting.prolific.recruiter import Prolific
from marketplace.recruiting.prolific.transport import Transport
from marketplace.recruiting.records import Account, RecruiterProblem, Unreachable
from marketplace.users import User

# Longer than what is asked of a recruiter for one thing; each begins it anew.
LASTS = timedelta(minutes=3)
KEPT_EACH_SECONDS = 20


_turn: ContextVar[Turn | None] = ContextVar("turn", default=None)


class Turn:
    def __init__(self, connection: RecruiterConnection, token: str) -> None:
        self._rows = RecruiterConnection.objects.filter(pk=connection.pk, turn_token=token)
        self._name, self._kept_at = connection.name, time.monotonic()

    def keep(self) -> None:
        if time.monotonic() - self._kept_at > KEPT_EACH_SECONDS:
            self.go_on()

    def go_on(self) -> None:
        require(
            self._rows.update(turn_until=timezone.now() + LASTS), RecruiterBusy(_busy(self._name))
        )
        self._kept_at = time.monotonic()

    def end(self) -> None:
        self._rows.update(turn_until=None, turn_token="")


@contextmanager
def turn_at(connection: RecruiterConnection) -> Iterator[Turn]:
    now, token = timezone.now(), uuid4().hex
    free = RecruiterConnection.objects.filter(Q(turn_until=None) | Q(turn_until__lte=now))
    require(
        free.filter(pk=connection.pk).update(turn_until=now + LASTS, turn_token=token),
        RecruiterBusy(_busy(connection.name)),
    )
    turn = Turn(connection, token)
    before = _turn.set(turn)
    try:
        yield turn
    finally:
        _turn.reset(before)
        turn.end()


def require_turn() -> None:
    """Before something is paid: RecruiterBusy if the turn is gone, as after a disconnect."""
    if (turn := _turn.get()) is not None:
        turn.go_on()


def keep_turn() -> None:
    if (turn := _turn.get()) is not None:
        turn.keep()


def _busy(name: str) -> str:
    return _("Another process calls {recruiter} at the moment. Try again in a minute.").format(
        recruiter=name
    )


# One thing after another at a recruiter: one that fails each time holds up no other, and a
# recruiter that is away is not asked about all of them.

logger = logging.getLogger(__name__)
# So long a round may wait for what fails; the rest of it has its turn in the next.
MOST_SECONDS = 30
# What failed in so many rounds is left out of the next ones, twice as long each time.
ROUNDS_BEFORE = 5
LONGEST_PAUSE_SECONDS = 600
REMEMBERED_SECONDS = 3600


class Patience:
    """Runs steps one after the other and passes over those that fail; the last problem is raised
    at the end, or when failed steps have used MOST_SECONDS. Nested ones count only the time of
    failures."""

    def __init__(self) -> None:
        self._problem: RecruiterProblem | None = None
        self._seconds = 0.0

    def try_to(self, do: Callable[[], object], *, key: str = "") -> None:
        """Do one step. A step that failed in several rounds under this key is left out for a
        while."""
        if key and (left_out := cache.get(f"recruiter-left-out:{key}")):
            self._problem = self._problem or Unreachable(left_out)
            return
        keep_turn()
        began = time.monotonic()
        try:
            do()
        # The turn went to another process, which does the rest; or our own database is away.
        except (RecruiterBusy, OperationalError, InterfaceError):
            raise
        except RecruiterProblem as problem:
            self._note(problem, key, began)
        except Exception as error:
            # Of one answer that nobody has thought of, say: no reason to leave out all others.
            logger.exception("A recruiter is called on without this")
            text = _("This failed ({error}): the site's log has the rest.")
            self._note(RecruiterProblem(text.format(error=type(error).__name__)), key, began)
        else:
            if key:
                cache.delete(f"recruiter-failures:{key}")

    def _note(self, problem: RecruiterProblem, key: str, began: float) -> None:
        waited = time.monotonic() - began if problem.waited is None else problem.waited
        self._problem, self._seconds = problem, self._seconds + waited
        if key:
            _remember(key, str(problem))
        if self._seconds >= MOST_SECONDS:
            problem.waited = self._seconds
            raise problem

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None and self._problem is not None:
            self._problem.waited = self._seconds
            raise self._problem


def _remember(key: str, problem: str) -> None:
    n: int = cache.get(f"recruiter-failures:{key}", 0) + 1
    cache.set(f"recruiter-failures:{key}", n, REMEMBERED_SECONDS)
    if n >= ROUNDS_BEFORE:
        pause = min(60 * 2 ** (n - ROUNDS_BEFORE + 1), LONGEST_PAUSE_SECONDS)
        cache.set(f"recruiter-left-out:{key}", problem or "-", pause)


# Having a recruiter's news sent here, where both can be reached.

# A recruiter stops sending after some days of failures, and somebody may have changed the secret.
CHECKED_EVERY = timedelta(days=1)


def keep_subscribed(connection: RecruiterConnection, recruiter: Prolific) -> None:
    checked_at = connection.webhooks_checked_at
    if checked_at is None or checked_at <= clock.now() - CHECKED_EVERY:
        # Events only speed things up: nothing waits for them.
        with suppress(RecruiterProblem):
            subscribe(connection, recruiter)


def subscribe(connection: RecruiterConnection, recruiter: Prolific) -> None:
    # Recruiters send to https only; a fake on this machine accepts http.
    ours, theirs = str(settings.SITE_URL), str(settings.PROLIFIC_URL)
    if not ours.startswith("https://") and not theirs.startswith("http://"):
        return
    # Before the first of them can come.
    connection.save_values(encrypted_webhook_secret=encrypt(recruiter.webhook_secret()))
    recruiter.subscribe(_address(connection))
    connection.save_values(webhooks_checked_at=clock.now())


def unsubscribe(connection: RecruiterConnection, recruiter: Prolific) -> None:
    if connection.encrypted_webhook_secret:
        recruiter.unsubscribe(_address(connection))


def _address(connection: RecruiterConnection) -> str:
    path = reverse("marketplace:recruiter_events", args=[connection.public_id])
    return f"{settings.SITE_URL}{path}"


Kind = RecruiterConnection.Kind
# Of bonuses that wait as an account is disconnected.
PERHAPS_PAID = gettext_lazy("The account was disconnected. Look there whether this was paid.")
NEVER_SENT = gettext_lazy(
    "The account was disconnected before this was sent, and nothing was paid by it. If it was not "
    "paid there by hand, request it again."
)


def connect_prolific(
    *,
    requester: Requester,
    name: str,
    token: str,
    workspace: str,
    project: str = "",
    user: User | None = None,
) -> tuple[RecruiterConnection, Account]:
    """Store the token, encrypted, after Prolific has accepted it. An existing connection of this
    name gets the new token."""
    _require_same_workspace(requester, name, workspace)
    require(
        token.isascii() and token.isprintable() and " " not in token,
        InvalidParameter(
            _("A token is one word of letters, digits and signs: copy it anew."), code="bad_token"
        ),
    )
    recruiter = _prolific(token, workspace)
    try:
        account = recruiter.check_credentials()
    except RecruiterProblem as problem:
        raise InvalidParameter(str(problem), code=problem.code) from problem
    except ValueError:
        raise InvalidParameter(_("The id of a workspace has letters and digits alone.")) from None
    require(
        not project or project in account.projects,
        InvalidParameter(
            _("The workspace has no project {project}. Leave it empty for its first.").format(
                project=project
            ),
            code="unknown_project",
        ),
    )
    facts = {
        "workspace": workspace,
        "project": project or account.project,
        "currency": account.currency,
        "account": account.name,
        "available": str(account.available),
    }
    with transaction.atomic():
        connection = _connection(requester, name)
        if not connection.encrypted_token:
            refuse_waiting_bonuses(connection)
        connection.save_values(
            encrypted_token=encrypt(token),
            settings=connection.settings | facts,
            problem="",
            webhooks_checked_at=None,
        )
        note("recruiter.connect", subject=name, user=user, requester=requester)
    with suppress(RecruiterProblem):  # what changed is asked for without, and this tried again
        subscribe(connection, recruiter)
    return connection, account


@transaction.atomic
def offer_prolific(
    *, requester: Requester, name: str, token: str, workspace: str, project: str = ""
) -> RecruiterConnection:
    _require_same_workspace(requester, name, workspace)
    connection = _connection(requester, name)
    offer = {"token": token, "workspace": workspace, "project": project}
    connection.save_values(encrypted_offer=encrypt(json.dumps(offer)), problem="")
    note("recruiter.offer", subject=name, requester=requester)
    return connection


def try_offer(*, connection: RecruiterConnection) -> None:
    """Connect with the offered token. If that fails, the problem is stored and the token is
    deleted."""
    offered, problem = connection.encrypted_offer, ""
    if not offered:
        return
    try:
        connect_prolific(
            requester=connection.requester, name=connection.name, **json.loads(decrypt(offered))
        )
    except InvalidParameter as refused:
        problem = str(refused)
    except Exception as error:
        _end_offer(
            connection,
            offered,
            _("This failed ({error}): the site's log has the rest.").format(
                error=type(error).__name__
            ),
        )
        raise
    _end_offer(connection, offered, problem)


def _end_offer(connection: RecruiterConnection, offered: str, problem: str) -> None:
    # Only this offer: another that was made meanwhile is tried next.
    RecruiterConnection.objects.filter(pk=connection.pk, encrypted_offer=offered).update(
        encrypted_offer="", problem=problem
    )


def disconnect(*, connection: RecruiterConnection) -> None:
    """Delete the token: the recruiter is not called any more, and open studies stay open there.
    Waiting bonuses are refused. If unsubscribing fails, the recruiter stops sending after some
    days."""
    recruiter = recruiter_of(connection, is_hurried=True)
    if recruiter is not None:
        with suppress(RecruiterProblem):
            unsubscribe(connection, recruiter)
    with transaction.atomic():
        rows = RecruiterConnection.objects.filter(pk=connection.pk)
        rows.update(encrypted_token="", encrypted_offer="", encrypted_webhook_secret="", problem="")
        rows.update(turn_until=None, turn_token="")  # a round that is under way ends with its step
        refuse_waiting_bonuses(connection)
        note("recruiter.disconnect", subject=connection.name, requester=connection.requester)


def refuse_waiting_bonuses(connection: RecruiterConnection) -> None:
    # They may be paid by hand meanwhile, so a person decides. One that was never sent is refused
    # and can be requested again; one that was sent is uncertain.
    waiting = Intent.objects.filter(
        connection=connection, kind=Intent.Kind.BONUS, state=Intent.State.WRITTEN
    )
    waiting.filter(basis__has_key="prepared").update(
        state=Intent.State.UNCERTAIN,
        problem=str(PERHAPS_PAID),
    )
    waiting.update(
        state=Intent.State.REFUSED,
        done_at=clock.now(),
        problem=str(NEVER_SENT),
    )


def required_recruiter(connection: RecruiterConnection) -> Prolific:
    recruiter = recruiter_of(connection)
    if recruiter is None:
        raise InvalidParameter(
            _("This connection has no token: connect it first."), code="disconnected"
        )
    return recruiter


def recruiter_of(connection: RecruiterConnection, *, is_hurried: bool = False) -> Prolific | None:
    """The recruiter's API, or None if everything is done by links and by hand."""
    if connection.kind != Kind.PROLIFIC or not connection.encrypted_token:
        return None
    token, workspace = decrypt(connection.encrypted_token), connection.settings["workspace"]
    stored = connection.encrypted_webhook_secret
    return _prolific(
        token, workspace, webhook_secret=decrypt(stored) if stored else "", is_hurried=is_hurried
    )


def _require_same_workspace(requester: Requester, name: str, workspace: str) -> None:
    # A connection's studies are in its workspace, and their decisions are sent there.
    connection = RecruiterConnection.objects.filter(
        requester=requester, kind=Kind.PROLIFIC, name=name
    ).first()
    if connection is None or connection.settings.get("workspace", workspace) == workspace:
        return
    if connection.studies.exclude(external_id="").exists():
        raise InvalidParameter(
            _(
                "“{name}” has studies in another workspace, where decisions on them are sent. "
                "Connect this one under another name."
            ).format(name=name),
            code="other_workspace",
        )


def _connection(requester: Requester, name: str) -> RecruiterConnection:
    connection, _is_new = RecruiterConnection.objects.get_or_create(
        requester=requester, kind=Kind.PROLIFIC, name=name, defaults={"created_at": clock.now()}
    )
    return (
        RecruiterConnection.objects.select_for_update(no_key=True, of=("self",))
        .select_related("requester")
        .get(pk=connection.pk)
    )


def _prolific(
    token: str, workspace: str, *, webhook_secret: str = "", is_hurried: bool = False
) -> Prolific:
    return Prolific(
        Transport(token, url=settings.PROLIFIC_URL, is_hurried=is_hurried),
        workspace=workspace,
        webhook_secret=webhook_secret,
    )
