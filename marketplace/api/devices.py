"""Worker accounts that submitted from one device, which the Requester API lacks.

    POST /marketplace-api/v1/devices   {"annotation_prefix": "assay:1f0c:"}

It covers the HITs whose RequesterAnnotation begins so, is signed like the Requester API, and
says no more than how often: neither an address nor a hash of one.
"""

from dataclasses import asdict

from django.http import HttpRequest, JsonResponse

from marketplace.api.authentication import requester_signed
from marketplace.api.statements import annotation_prefix
from marketplace.hits.devices import MOST_OTHERS, shared_devices
from marketplace.hits.same_person import shared_traits
from marketplace.models import Requester


@requester_signed
def devices(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Each worker who shared a device with others, in how many of the submissions.

    Access: whoever holds an access key; of its requester's HITs alone.
    """
    rows = shared_devices(requester, annotation_prefix(request))
    described = [
        {
            "worker_id": row.worker_id,
            "n_shared": row.n_shared,
            "n": row.n,
            "n_others": len(row.others),
            "others": list(row.others[:MOST_OTHERS]),
        }
        for row in rows
    ]
    return JsonResponse({"shared_devices": described})


@requester_signed
def traits(request: HttpRequest, requester: Requester) -> JsonResponse:
    """Each worker who shares a device, a payout or long texts with others, and with how many.

    Access: whoever holds an access key; of its requester's HITs alone.
    """
    rows = shared_traits(requester, annotation_prefix(request))
    described = [
        asdict(row) | {"n_others": len(row.others), "others": list(row.others[:MOST_OTHERS])}
        for row in rows
    ]
    return JsonResponse({"shared_traits": described})
