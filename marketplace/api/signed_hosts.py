"""Names that requests are signed for, besides the one a request is sent to.

Programs written for Mechanical Turk sign `POST /` at Amazon's host. What leads them here
(`manage.py mturk_bridge`) calls the API under the marketplace's own name and says in a header for
which name the request was signed. The header is no proof of anything: the signature is, made for
that very name with a key that this marketplace issued and no other accepts. So it opens nothing
that the signed request itself does not (docs/adr/0021-requests-signed-for-amazons-names.md).
"""

from collections.abc import Mapping

from marketplace.exceptions import ProtocolError

AMAZON_HOSTS = (
    "mturk-requester.us-east-1.amazonaws.com",
    "mturk-requester-sandbox.us-east-1.amazonaws.com",
)
SIGNED_HOST = "X-Assay-Signed-Host"
SIGNED_PATH = "/"


def amazon_host_of(headers: Mapping[str, str]) -> str | None:
    """For which of Amazon's names a request says it was signed; None where it says none."""
    host = headers.get(SIGNED_HOST)
    if host is not None and host not in AMAZON_HOSTS:
        names = " or ".join(AMAZON_HOSTS)
        raise ProtocolError("InvalidSignatureException", f"{SIGNED_HOST} must be {names}.")
    return host
