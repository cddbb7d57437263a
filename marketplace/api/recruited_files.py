"""Files of a recruited study, at an address that the holder of an access key signs for a person.

    GET /marketplace-api/v1/recruiting/files/STUDY/join.csv
        ?key=ACCESSKEYID&reader=ada&expires=1764133200&signature=…

`signature` is the HMAC-SHA256, in hexadecimal, of the path and the three other values, a line
each, under the key's secret. So a site that knows its people leads one of them to a file, which
it neither fetches nor keeps. An address holds for minutes, and each use is in the audit log.
"""

import csv
import hashlib
import hmac
from collections.abc import Callable, Iterator
from datetime import timedelta

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from marketplace.api import throttle
from marketplace.exceptions import ChannelDoesNotExist, ProtocolError
from marketplace.models import AccessKey, RecruitedStudy
from marketplace.people.access_keys import is_owners
from marketplace.people.key_secrets import find_active_key, note_use, secrets_of
from marketplace.recruiting.files import demographics_file, join_file, participants_file
from marketplace.recruiting.studies import find_study

LONGEST_TIME = 11  # digits of seconds since 1970
LONGEST = timedelta(minutes=10)
LONGEST_READER = 150
FILES: dict[str, Callable[..., Iterator[tuple[str, ...]]]] = {
    "participants": participants_file,
    "join": join_file,
    "demographics": demographics_file,
}


@login_not_required
@require_safe
@never_cache
def recruited_file(request: HttpRequest, token: str, name: str) -> HttpResponse:
    """One of a study's files as CSV.

    Access: whoever has an address that a key of its requester's signed minutes ago; the key is an
    owner's, or the operator issued it.
    """
    if name not in FILES:
        raise Http404
    key = _signing_key(request)
    try:
        throttle.take_token(key, now=timezone.now())
    except ProtocolError as error:
        return HttpResponse(str(error), status=429, content_type="text/plain")
    study = _study(key, token)
    rows = FILES[name](study, user=None, reader=request.GET["reader"][:LONGEST_READER])
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    csv.writer(response).writerows(rows)
    return response


def _signing_key(request: HttpRequest) -> AccessKey:
    values = [request.GET.get(one, "") for one in ("key", "reader", "expires")]
    key, now = find_active_key(values[0]), timezone.now()
    signature = request.GET.get("signature", "")
    signed = "\n".join([request.path, *values]).encode()
    if key is None or not any(_matches(secret, signed, signature) for secret in secrets_of(key)):
        raise PermissionDenied(_("This address is not signed by an access key."))
    # It is signed, so `expires` is what the signer wrote.
    is_time = values[2].isdecimal() and len(values[2]) <= LONGEST_TIME
    left = int(values[2]) - now.timestamp() if is_time else -1
    if not 0 <= left <= LONGEST.total_seconds():
        raise PermissionDenied(_("This address held for minutes only. Ask for the file again."))
    if not is_owners(key):
        raise PermissionDenied(_("Only an owner may see who participants are."))
    note_use(key, now=now)
    return key


def _matches(secret: str, signed: bytes, signature: str) -> bool:
    made = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return hmac.compare_digest(made.encode(), signature.encode())


def _study(key: AccessKey, token: str) -> RecruitedStudy:
    try:
        return find_study(key.requester, token)
    except ChannelDoesNotExist as error:
        raise Http404(str(error)) from error
