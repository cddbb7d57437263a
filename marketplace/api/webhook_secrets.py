"""What a requester's webhooks are signed with, which the Requester API lacks.

    POST /marketplace-api/v1/webhook-secret   {}
    POST /marketplace-api/v1/webhook-secret   {"renew": true}

It is signed like the Requester API.
"""

import json

from django.http import HttpRequest, JsonResponse

from marketplace.api.authentication import requester_signed
from marketplace.exceptions import InvalidParameter
from marketplace.models import Requester
from marketplace.people import webhook_secrets


@requester_signed
def webhook_secret(request: HttpRequest, requester: Requester) -> JsonResponse:
    """The requester's secret, as Standard Webhooks writes it; a new one on demand.

    Access: whoever holds an access key; that of its requester alone.
    """
    try:
        body = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise InvalidParameter("The body is not JSON.") from error
    renew = body.get("renew", False) if isinstance(body, dict) else None
    if not isinstance(renew, bool):
        raise InvalidParameter("The body must be an object, with 'renew' true, false or absent.")
    return JsonResponse({"secret": webhook_secrets.webhook_secret(requester, renew=renew)})
