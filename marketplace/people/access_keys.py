"""Issuing and ending a requester's access keys."""

from django.db import transaction

from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import AccessKeyDoesNotExist, TooManyKeys
from marketplace.models import AccessKey, Requester
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
    note("key.issue", subject=key.access_key_id, user=user, requester=requester)
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
