"""Recruiters of a requester's participants, of whom the Requester API knows nothing.

    POST /marketplace-api/v1/recruiting             {"annotation_prefix": "assay:1f0c:"}
    POST /marketplace-api/v1/recruiting/decisions   {"after"}
    POST /marketplace-api/v1/recruiting/connect     {"name", "token", "workspace", "project"}
    POST /marketplace-api/v1/recruiting/disconnect  {"recruiter"}
    POST /marketplace-api/v1/recruiting/hand-over   {"hit_type_id"}
    POST /marketplace-api/v1/recruiting/draft       {"request_token", "recruiter", "hit_type_id", …}
    POST /marketplace-api/v1/recruiting/act         {"study", "action", "places", "confirmed", …}
    POST /marketplace-api/v1/recruiting/sessions    {"study", "after"}
    POST /marketplace-api/v1/recruiting/bonus       {"study", "worker_id", "amount", "currency", …}
    POST /marketplace-api/v1/recruiting/settle      {"call", "was_done"}
    POST /marketplace-api/v1/recruiting/demographics  {"study"}
    POST /marketplace-api/v1/recruiting/erase       {"study", "worker_id"}
    POST /marketplace-api/v1/recruiting/open        {"request_token", "hit_type_id", "items", …}
    POST /marketplace-api/v1/recruiting/links       {"study", "labels", "revoked", "is_shared", …}

All are signed like the Requester API, and may be repeated. A recruiter is called by a background
job, never by a request: what was requested is under way (`action`, `is_being_tried`) until the
standing says that it is not, with the reason (`problem`) where it was not done. A refusal is
{"error", "code"}: the text for people, and its stable code for programs.
"""

import csv
import hashlib
import hmac
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST, require_safe

from encryption import decrypt
from marketplace.api import authentication
from marketplace.api.authentication import is_owners_request, read_body, requester_signed
from marketplace.api.request_bodies import Body, hit_type_of, posting_of, recruiter_of, study_of
from marketplace.exceptions import (
    ChannelDoesNotExist,
    InvalidParameter,
    ProtocolError,
    first_or_raise,
    require,
)
from marketplace.models import (
    AccessKey,
    Intent,
    RecruitedStudy,
    RecruiterConnection,
    Requester,
)
from marketplace.people.enrolment import find_active_key, is_owners, note_use
from marketplace.recruiting.calls import (
    Action,
    receive_event,
    request_action,
    request_connection,
    request_draft,
)
from marketplace.recruiting.connections import disconnect
from marketplace.recruiting.dispatch import decide_uncertain
from marketplace.recruiting.files import (
    demographics_file,
    join_file,
    participants_file,
    request_demographics,
)
from marketplace.recruiting.intents import request_bonus_in
from marketplace.recruiting.participants import erase_participant
from marketplace.recruiting.records import NotVerified
from marketplace.recruiting.sessions import revoke_invitation
from marketplace.recruiting.standing import (
    calls_of,
    decisions_of,
    participations_of,
    people_of,
    recruiters_of,
    refused_bonuses_of,
    sessions_of,
    studies_of,
    withdrawn_of,
)
from marketplace.recruiting.studies import (
    MOST_INVITATIONS,
    MOST_ITEMS,
    StudyValues,
    find_study,
    invite,
    let_participants_work,
    open_study,
    require_own_lab,
    set_open,
    share_link,
)


@requester_signed
def standing(request: HttpRequest, requester: Requester) -> JsonResponse:
    """The requester's accounts at recruiters, and their studies, or those of some HITs.

    Access: whoever holds an access key; of its requester alone. With an owner's key, or one that
    the operator issued, calls name submissions.
    """
    prefix = Body(request).text("annotation_prefix", most=255, default="")
    studies = RecruitedStudy.objects.filter(requester=requester)
    if prefix:
        studies = studies.filter(annotation_prefix=prefix)
    return JsonResponse(
        {
            "recruiters": recruiters_of(requester),
            "studies": studies_of(studies),
            "calls": calls_of(studies, has_ids=is_owners_request(request)),
            "refused_bonuses": refused_bonuses_of(studies),
            "participations": participations_of(studies),
            "withdrawn": withdrawn_of(studies),
        }
    )


@requester_signed
def decisions(request: HttpRequest, requester: Requester) -> JsonResponse:
    """What was decided on participants' work, here or at their recruiter, a thousand at a time.

    Access: whoever holds an access key; of its requester alone.
    """
    listed, after = decisions_of(requester, after=Body(request).text("after", most=64, default=""))
    return JsonResponse({"decisions": listed, "after": after})


@requester_signed
def connect(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Have the token of a workspace at Prolific tried, and kept; no answer ever has it.

    Access: whoever holds an access key; of its requester alone.
    """
    body = Body(request)
    return JsonResponse(
        {
            "recruiter": request_connection(
                requester=requester,
                name=body.text("name", most=100),
                token=body.text("token", most=500),
                workspace=body.text("workspace", most=64),
                project=body.text("project", most=64, default=""),
            ).public_id
        }
    )


@requester_signed
def end_connection(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Forget a token.

    Access: whoever holds an access key; of its requester alone.
    """
    connection = recruiter_of(requester, Body(request))
    disconnect(connection=connection)
    return JsonResponse({"recruiter": connection.public_id})


@requester_signed
def hand_over(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Keep the HITs of a type for participants, whom their recruiter pays: nothing is held for
    them here, and no other worker is offered them.

    Access: whoever holds an access key; of its requester's HIT types alone.
    """
    hit_type = hit_type_of(requester, Body(request))
    let_participants_work(hit_type=hit_type)
    return JsonResponse({"hit_type_id": hit_type.public_id})


@requester_signed
def draft(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Have a study of a HIT type, a HIT group or the HITs of a batch drafted; by the same
    request token it is the same study.

    Access: whoever holds an access key; of its requester's HITs alone.
    """
    body = Body(request)
    return _described(
        request_draft(
            connection=recruiter_of(requester, body),
            hit_type=hit_type_of(requester, body),
            values=posting_of(requester, body),
            request_token=body.text("request_token", most=64),
        )
    )


@requester_signed
def act(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Have a study published, for the amount that is confirmed; paused, resumed, stopped; given
    more places, for theirs, which is asked of the recruiter first, as what a bonus costs is; or a
    draft discarded.

    Access: whoever holds an access key; of its requester's studies alone.
    """
    body = Body(request)
    action = body.choice("action", [one.value for one in Action])
    values: dict[str, Any] = {}
    if action in (Action.PRICE, Action.PLACES):
        values["places"] = body.integer("places", least=1, most=100_000)
    if action in (Action.PUBLISH, Action.PLACES):
        values["confirmed"] = str(body.amount("confirmed"))
    if action == Action.BONUS:
        values |= {
            "worker_id": body.text("worker_id", most=64),
            "amount": str(body.amount("amount")),
        }
    study = study_of(requester, body)
    token = body.text("request_token", most=64, default="")
    return _described(
        request_action(study=study, action=action, values=values, request_token=token)
    )


@requester_signed
def sessions(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Some of a study's participations by WorkerId, those after the session that is named.

    Access: whoever holds an access key; of its requester's studies alone.
    """
    body = Body(request)
    rows = sessions_of(study_of(requester, body), after=body.text("after", most=30, default=""))
    return JsonResponse({"sessions": rows})


@requester_signed
def demographics(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Have the recruiter asked what a study's participants told it about themselves.

    Access: whoever holds an access key; of its requester's studies alone.
    """
    study = study_of(requester, Body(request))
    request_demographics(study=study)
    return JsonResponse({"study": study.token})


@requester_signed
def erase(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Erase who a participant of a study is, who asked the researchers for it.

    Access: whoever holds an access key of an owner's, or one that the operator issued; of its
    requester's studies alone.
    """
    require(
        is_owners_request(request),
        InvalidParameter("Participants are erased with the key of an owner.", code="not_an_owner"),
    )
    body = Body(request)
    study, worker_id = study_of(requester, body), body.text("worker_id", most=64)
    erase_participant(study=study, worker_id=worker_id)
    return JsonResponse({"study": study.token})


@requester_signed
def open_own_study(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Open a study whose participants the requester invites by links, without a recruiter. The same
    request token returns the same study.

    Access: whoever holds an access key; of its requester's HITs alone.
    """
    body = Body(request)
    hit_type = hit_type_of(requester, body)
    values = StudyValues(
        name=hit_type.title[:100],
        kind=RecruiterConnection.Kind.OWN_LAB,
        items_per_session=body.integer("items", least=1, most=MOST_ITEMS),
        annotation_prefix=body.text("annotation_prefix", most=255, default=""),
        is_shared=False,
        request_token=body.text("request_token", most=64),
    )
    return _described(open_study(requester=requester, hit_type=hit_type, values=values))


@requester_signed
def links(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Make and revoke links of a study of the requester's own lab; open or close it; return all
    links and how much each person has done. What is left out stays as it is.

    Access: whoever holds an access key of an owner's, or one that the operator issued; of its
    requester's studies alone.
    """
    require(
        is_owners_request(request),
        InvalidParameter("Links are made with the key of an owner.", code="not_an_owner"),
    )
    body = Body(request)
    study = study_of(requester, body)
    require_own_lab(study)
    if labels := body.texts("labels", most=MOST_INVITATIONS, longest=100):
        invite(study=study, labels=labels)
    for number in body.integers("revoked", most=MOST_INVITATIONS):
        invitation = study.invitations.filter(pk=number).select_related("study__requester").first()
        if invitation is not None:
            revoke_invitation(invitation=invitation)
    if (is_shared := body.boolean_if_any("is_shared")) is not None:
        share_link(study=study, is_shared=is_shared)
    if (is_open := body.boolean_if_any("is_open")) is not None:
        set_open(study=study, is_open=is_open)
    return JsonResponse(people_of(study))


@requester_signed
def bonus(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Have a participant of a study paid a bonus in the currency of the recruiter's account, once
    under the request token.

    Access: whoever holds an access key; of its requester's studies alone.
    """
    body = Body(request)
    intent = request_bonus_in(
        body.text("currency", most=3),
        study=study_of(requester, body),
        worker_id=body.text("worker_id", most=64),
        bonus=body.amount("amount"),
        reason=body.text("reason", most=4096),
        token=body.text("request_token", most=64),
    )
    return JsonResponse({"call": intent.pk, "state": intent.state})


@requester_signed
def settle(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Say what was found at the recruiter of a call that nobody answered.

    Access: whoever holds an access key; of its requester's studies alone.
    """
    body = Body(request)
    key, was_done = body.integer("call", least=1, most=2**62), body.boolean("was_done")
    intent = first_or_raise(
        Intent.objects.filter(pk=key, session__study__requester=requester),
        InvalidParameter(f"There is no call {key}.", code="unknown_call"),
    )
    decide_uncertain(intent=intent, was_done=was_done)
    intent.refresh_from_db()
    return JsonResponse({"call": intent.pk, "state": intent.state})


def _described(study: RecruitedStudy) -> JsonResponse:
    [row] = studies_of(RecruitedStudy.objects.filter(pk=study.pk))
    return JsonResponse({"study": row})


# Where recruiters send their news (docs/recruiting.md).

MOST_BYTES = 64 * 1024


@csrf_exempt
@login_not_required
@require_POST
@never_cache
def recruiter_events(request: HttpRequest, connection_id: str) -> HttpResponse:
    """Take an event, and do no more than write it down.

    Access: whoever signs with the secret of the connection's workspace.
    """
    try:
        body = read_body(request)
        if len(body) > MOST_BYTES:
            return HttpResponse(status=413)
        receive_event(connection_id, request.headers, body)
    except ProtocolError as error:
        return HttpResponse(status=error.status)
    except NotVerified:
        return HttpResponse(status=401)
    return HttpResponse(status=200)


# Files of a recruited study, at an address that the holder of an access key signs for a person.
#
#     GET /marketplace-api/v1/recruiting/files/STUDY/join.csv
#         ?key=ACCESSKEYID&reader=ada&expires=1764133200&signature=…
#
# `signature` is the HMAC-SHA256, in hexadecimal, of the path and the three other values, a line
# each, under the key's secret. So a site that knows its people leads one of them to a file, which
# it neither fetches nor keeps. An address holds for minutes, and each use is in the audit log.

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
    require(name in FILES, Http404())
    key = _signing_key(request)
    try:
        authentication.take_token(key, now=timezone.now())
    except ProtocolError as error:
        return HttpResponse(str(error), status=429, content_type="text/plain")
    rows = FILES[name](_study(key, token), user=None, reader=request.GET["reader"][:LONGEST_READER])
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    csv.writer(response).writerows(rows)
    return response


def _signing_key(request: HttpRequest) -> AccessKey:
    values = [request.GET.get(one, "") for one in ("key", "reader", "expires")]
    key, now = find_active_key(values[0]), timezone.now()
    signature = request.GET.get("signature", "")
    signed = "\n".join([request.path, *values]).encode()
    if key is None or not _matches(decrypt(key.encrypted_secret), signed, signature):
        raise PermissionDenied(_("This address is not signed by an access key."))
    # It is signed, so `expires` is what the signer wrote.
    is_time = values[2].isdecimal() and len(values[2]) <= LONGEST_TIME
    left = int(values[2]) - now.timestamp() if is_time else -1
    require(
        0 <= left <= LONGEST.total_seconds(),
        PermissionDenied(_("This address held for minutes only. Ask for the file again.")),
    )
    require(is_owners(key), PermissionDenied(_("Only an owner may see who participants are.")))
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
