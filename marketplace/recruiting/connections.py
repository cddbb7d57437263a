"""A requester's connections to recruiters that have an API: made with a token, called by it."""

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from encryption import decrypt, encrypt
from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import InvalidParameter
from marketplace.models import RecruiterConnection, Requester
from marketplace.recruiting.port import Recruiter
from marketplace.recruiting.problems import RecruiterProblem
from marketplace.recruiting.prolific import Prolific, Transport
from marketplace.recruiting.records import Account
from marketplace.users import User

Kind = RecruiterConnection.Kind


def connect_prolific(
    *,
    requester: Requester,
    name: str,
    token: str,
    workspace: str,
    project: str = "",
    user: User | None = None,
) -> tuple[RecruiterConnection, Account]:
    """Keep the token of a workspace, encrypted, once Prolific has accepted it; a connection of
    this name gets the new token."""
    try:
        account = _prolific(token, workspace).check_credentials()
    except RecruiterProblem as problem:
        raise InvalidParameter(str(problem)) from problem
    except ValueError:
        raise InvalidParameter(_("The id of a workspace has letters and digits alone.")) from None
    facts = {"workspace": workspace, "project": project, "currency": account.currency}
    with transaction.atomic():
        connection, _is_new = RecruiterConnection.objects.get_or_create(
            requester=requester,
            kind=Kind.PROLIFIC,
            name=name,
            defaults={"created_at": clock.now()},
        )
        connection.encrypted_token, connection.settings = encrypt(token), facts
        connection.problem = ""
        connection.save(update_fields=["encrypted_token", "settings", "problem"])
        note("recruiter.connect", subject=name, user=user, requester=requester)
    return connection, account


def recruiter_of(connection: RecruiterConnection, *, is_hurried: bool = False) -> Recruiter | None:
    """Whom to call; None where everything is done by links and by hand."""
    if connection.kind != Kind.PROLIFIC or not connection.encrypted_token:
        return None
    token, workspace = decrypt(connection.encrypted_token), connection.settings["workspace"]
    return _prolific(token, workspace, is_hurried=is_hurried)


def _prolific(token: str, workspace: str, *, is_hurried: bool = False) -> Prolific:
    transport = Transport(token, url=settings.PROLIFIC_URL, is_hurried=is_hurried)
    return Prolific(transport, workspace=workspace)
