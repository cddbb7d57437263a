"""Which addresses a team's connection may lead to: none inside the site's own network."""

from __future__ import annotations

from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from hits.exceptions import ConnectionUnfit, MarketplaceUnreachable
from hits.marketplaces import THIS_SITE, marketplace_at
from work.addresses import is_outside


def require_outside(endpoint_url: str) -> None:
    """Refuse addresses inside the site's own network, which a team has no business to call."""
    host = urlsplit(endpoint_url).hostname or ""
    if not host or marketplace_at(endpoint_url).name == THIS_SITE:
        return
    try:
        is_allowed = is_outside(host)
    except OSError as error:
        raise MarketplaceUnreachable(
            _("There is no marketplace at “{host}”: {error}.").format(host=host, error=error)
        ) from error
    if not is_allowed:
        raise ConnectionUnfit(
            _("“{host}” is an address inside this site's own network.").format(host=host)
        )
