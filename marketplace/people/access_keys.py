"""Issuing and ending a requester's access keys."""

from django.db import transaction

from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import AccessKeyDoesNotExist, TooManyKeys
from marketplace.models import AccessKey, AuditEntry, Requester
from marketplace.people.key_secrets import IssuedKey, create_key
from marketplace.users import User

MOST_KEYS = 20


@transaction.atomic
def issue_key(*, requester: Requester, label: str, user: User | None) -> IssuedKey:
    """One more key, with the secret that is shown this once."""
    Requester.objects.select_for_update(no_key=True).get(pk=requester.pk)
    if AccessKey.objects.filter(requester=requester, revoked_at=None).count() >= MOST_KEYS:
        raise TooManyKeys(f"A requester has at most {MOST_KEYS} keys: revoke one first.")
    key = create_key(requester=requester, label=label, at=clock.now())
    detail = {"is_of_a_user": user is not None}  # which stays known when the user is deleted
    note("key.issue", subject=key.access_key_id, user=user, requester=requester, detail=detail)
    return key


@transaction.atomic
def revoke_key(*, requester: Requester, access_key_id: str, user: User | None) -> None:
    """End a key: from now on no request signed with it is answered. Doing it again changes
    nothing."""
    mine = AccessKey.objects.filter(requester=requester, access_key_id=access_key_id)
    if not mine.exists():
        raise AccessKeyDoesNotExist(access_key_id)
    if mine.filter(revoked_at=None).update(revoked_at=clock.now()):
        note("key.revoke", subject=access_key_id, user=user, requester=requester)


def is_owners(key: AccessKey) -> bool:
    """Whether who participants are may be read with it: an owner issued it, or no user of the
    requester's did, but the operator or a site that enrolled the requester."""
    issue = AuditEntry.objects.filter(action="key.issue", subject=key.access_key_id).first()
    if issue is None:  # of before keys were written down
        return True
    if issue.user_id is None:
        # Of before it was written down: people name their keys, operators' programs do not.
        return not issue.detail.get("is_of_a_user", bool(key.label))
    return key.requester.owners.filter(pk=issue.user_id).exists()
