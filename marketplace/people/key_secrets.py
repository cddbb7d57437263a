"""Secret access keys.

SigV4 needs the secret itself to check a signature, so it can't be stored as a
hash. It is not stored at all: it is the HMAC-SHA256 of the access key id under
a key derived from SECRET_KEY, computed again when a request comes in.

The trade-off: whoever copies the database learns no secret, and there is
nothing to encrypt or back up; but whoever learns SECRET_KEY can compute every
secret, and changing SECRET_KEY ends all access keys at once (requesters are
then given new ones with `create_requester`). A single key is ended by setting
`AccessKey.revoked_at`.
"""

import base64
from datetime import datetime, timedelta

from django.utils.crypto import salted_hmac

from marketplace.models import AccessKey

SALT = "marketplace.secret_access_key"
NOTED_EVERY = timedelta(minutes=1)


def secret_access_key(access_key_id: str) -> str:
    """The secret that belongs to an access key id, known or not."""
    digest = salted_hmac(SALT, access_key_id, algorithm="sha256").digest()
    return base64.b64encode(digest).decode("ascii")


def find_active_key(access_key_id: str) -> AccessKey | None:
    """The active key with this id, its requester loaded; None where there is none."""
    keys = AccessKey.objects.select_related("requester")
    return keys.filter(access_key_id=access_key_id, revoked_at=None).first()


def note_use(key: AccessKey, *, now: datetime) -> None:
    """Write down when a key was last used, to the minute."""
    if key.last_used_at is None or key.last_used_at < now - NOTED_EVERY:
        AccessKey.objects.filter(pk=key.pk).update(last_used_at=now)
