"""What a requester's webhooks are signed with, which the Requester API lacks.

    POST /marketplace-api/v1/webhook-secret   {}
    POST /marketplace-api/v1/webhook-secret   {"renew": true}

It is signed like the Requester API.
"""

from django.http import HttpRequest, JsonResponse

from marketplace.api.authentication import requester_signed
from marketplace.api.request_bodies import read_object
from marketplace.exceptions import InvalidParameter
from marketplace.models import Requester
from marketplace.people import webhook_secrets


@requester_signed
def webhook_secret(request: HttpRequest, requester: Requester) -> JsonResponse:
    """The requester's secret, as Standard Webhooks writes it; a new one on demand.

    Access: whoever holds an access key; that of its requester alone.
    """
    renew = read_object(request).get("renew", False)
    if not isinstance(renew, bool):
        raise InvalidParameter("'renew' must be true, false or absent.")
    return JsonResponse({"secret": webhook_secrets.webhook_secret(requester, renew=renew)})
