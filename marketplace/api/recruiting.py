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

All are signed like the Requester API, and may be repeated. A recruiter is called by a background
job, never by a request: what was requested is under way (`action`, `is_being_tried`) until the
standing says that it is not, with the reason (`problem`) where it was not done. A refusal is
{"error", "code"}: the text for people, and its stable code for programs.
"""

from typing import Any

from django.http import HttpRequest, JsonResponse

from marketplace.api.authentication import is_owners_request, requester_signed
from marketplace.api.recruiting_inputs import Body, hit_type_of, posting_of, recruiter_of, study_of
from marketplace.exceptions import InvalidParameter
from marketplace.models import Intent, RecruitedStudy, Requester
from marketplace.recruiting.connections import disconnect
from marketplace.recruiting.dispatch import decide_uncertain
from marketplace.recruiting.files import request_demographics
from marketplace.recruiting.intents import request_bonus_in
from marketplace.recruiting.participants import erase_participant
from marketplace.recruiting.requests import (
    Action,
    request_action,
    request_connection,
    request_draft,
)
from marketplace.recruiting.standing import (
    calls_of,
    decisions_of,
    participations_of,
    recruiters_of,
    refused_bonuses_of,
    sessions_of,
    studies_of,
    withdrawn_of,
)
from marketplace.recruiting.studies import let_participants_work

NEEDS_PLACES = (Action.PRICE, Action.PLACES)
NEEDS_AMOUNT = (Action.PUBLISH, Action.PLACES)


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
    content = {
        "recruiters": recruiters_of(requester),
        "studies": studies_of(studies),
        "calls": calls_of(studies, has_ids=is_owners_request(request)),
        "refused_bonuses": refused_bonuses_of(studies),
        "participations": participations_of(studies),
        "withdrawn": withdrawn_of(studies),
    }
    return JsonResponse(content)


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
    connection = request_connection(
        requester=requester,
        name=body.text("name", most=100),
        token=body.text("token", most=500),
        workspace=body.text("workspace", most=64),
        project=body.text("project", most=64, default=""),
    )
    return JsonResponse({"recruiter": connection.public_id})


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
    study = request_draft(
        connection=recruiter_of(requester, body),
        hit_type=hit_type_of(requester, body),
        values=posting_of(requester, body),
        request_token=body.text("request_token", most=64),
    )
    return _described(study)


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
    if action in NEEDS_PLACES:
        values["places"] = body.integer("places", least=1, most=100_000)
    if action in NEEDS_AMOUNT:
        values["confirmed"] = str(body.amount("confirmed"))
    if action == Action.BONUS:
        values |= {
            "worker_id": body.text("worker_id", most=64),
            "amount": str(body.amount("amount")),
        }
    study = study_of(requester, body)
    token = body.text("request_token", most=64, default="")
    requested = request_action(study=study, action=action, values=values, request_token=token)
    return _described(requested)


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
    if not is_owners_request(request):
        text = "Participants are erased with the key of an owner."
        raise InvalidParameter(text, code="not_an_owner")
    body = Body(request)
    study, worker_id = study_of(requester, body), body.text("worker_id", most=64)
    erase_participant(study=study, worker_id=worker_id)
    return JsonResponse({"study": study.token})


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
    intent = Intent.objects.filter(pk=key, session__study__requester=requester).first()
    if intent is None:
        raise InvalidParameter(f"There is no call {key}.", code="unknown_call")
    decide_uncertain(intent=intent, was_done=was_done)
    intent.refresh_from_db()
    return JsonResponse({"call": intent.pk, "state": intent.state})


def _described(study: RecruitedStudy) -> JsonResponse:
    [row] = studies_of(RecruitedStudy.objects.filter(pk=study.pk))
    return JsonResponse({"study": row})
