"""Which addresses a team's connection may lead to: none inside the site's own network."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from hits.exceptions import ConnectionUnfit, MarketplaceUnreachable
from hits.marketplaces import marketplace_at
from hits.profiles import THIS_SITE
from work.addresses import checked_addresses


def require_outside(endpoint_url: str) -> None:
    """Refuse addresses inside the site's own network, which a team has no business to call.

    It says so early and in words. What holds is that each connection is made to what
    `outside_addresses` returns then (hits.call_limits): a name's owner may let it lead elsewhere
    by the time it is looked up again.
    """
    outside_addresses(endpoint_url)


def outside_addresses(endpoint_url: str) -> list[str]:
    """The addresses to connect to, looked up once; none where any will do."""
    host = urlsplit(endpoint_url).hostname or ""
    if not host or marketplace_at(endpoint_url).name == THIS_SITE:
        return []
    try:
        addresses = checked_addresses(host)
    except OSError as error:
        raise MarketplaceUnreachable(
            _("There is no marketplace at “{host}”: {error}.").format(host=host, error=error),
            code="unknown_host",
        ) from error
    if addresses is None:
        raise ConnectionUnfit(
            _("“{host}” is an address inside this site's own network.").format(host=host),
            code="internal_address",
        )
    return addresses
