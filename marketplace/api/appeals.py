"""Appeals of workers, which the Requester API lacks: reading and answering them.

    POST /marketplace-api/v1/appeals          {}
    POST /marketplace-api/v1/appeals/answer   {"assignment_id": "3...", "answer": "..."}

Both are signed like the Requester API. An appeal is granted by ApproveAssignment with
OverrideRejection; the answer is what the worker reads beside it.
"""

from typing import Any

from django.http import HttpRequest, JsonResponse

from marketplace.api.authentication import requester_signed
from marketplace.api.request_bodies import read_object
from marketplace.exceptions import InvalidParameter
from marketplace.hits.appeals import answer_appeal
from marketplace.models import Appeal, Requester

MOST_APPEALS = 1000


@requester_signed
def appeals(request: HttpRequest, requester: Requester) -> JsonResponse:
    """The newest appeals, answered ones too.

    Access: whoever holds an access key; of its requester's HITs alone.
    """
    rows = Appeal.objects.filter(assignment__hit__requester=requester).order_by("-pk")
    rows = rows.select_related("assignment__worker", "assignment__hit")[:MOST_APPEALS]
    return JsonResponse({"appeals": [_described(one) for one in rows]})


@requester_signed
def answer(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Answer an appeal, once.

    Access: whoever holds an access key; of its requester's HITs alone.
    """
    body = read_object(request)
    assignment_id, text = body.get("assignment_id"), body.get("answer")
    if not isinstance(assignment_id, str) or not isinstance(text, str):
        raise InvalidParameter("'assignment_id' and 'answer' must be texts.")
    answered = answer_appeal(requester=requester, assignment_id=assignment_id, answer=text)
    return JsonResponse(_described(answered))


def _described(appeal: Appeal) -> dict[str, Any]:
    return {
        "assignment_id": appeal.assignment.public_id,
        "hit_id": appeal.assignment.hit.public_id,
        "worker_id": appeal.assignment.worker.worker_id,
        "reason": appeal.reason,
        "appealed_at": appeal.created_at.isoformat(),
        "answer": appeal.answer,
    }
