"""Marketplaces by their address: however it is spelled, the same one."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from error_codes import CodedText
from hits.exceptions import ConnectionUnfit, MarketplaceUnreachable
from work.addresses import checked_addresses

THIS_SITE = "local"
PROFILES = (THIS_SITE,)
# What connections of former studies are called, and where they led.
AMAZON = ("sandbox", "production")
AMAZON_HOSTS = (
    "mturk-requester.us-east-1.amazonaws.com",
    "mturk-requester-sandbox.us-east-1.amazonaws.com",
)


def profile_problem(name: str) -> CodedText | None:
    """Return why there is no such marketplace and what to use instead, or None."""
    if name in PROFILES:
        return None
    if name in AMAZON:
        return CodedText(amazon_closed(), code="amazon_closed")
    profiles = ", ".join(PROFILES)
    return CodedText(
        _("There is no marketplace profile '{profile}'. Profiles: {profiles}.").format(
            profile=name, profiles=profiles
        ),
        code="unknown_profile",
    )


def amazon_closed() -> str:
    return _(
        "Amazon closed Mechanical Turk on 2026-09-30. Use this site's own marketplace (profile "
        "local) or a connection to another Assay's; programs with Amazon's address in their code "
        "are led there by `python manage.py mturk_bridge`."
    )


PORTS = {"http": 80, "https": 443}
THIS_MACHINE = ("localhost", "127.0.0.1", "[::1]", "0.0.0.0", "[::]")


@dataclass(frozen=True)
class MarketplaceAddress:
    """A marketplace: whose worker ids it has, where requests go, what it charges if that is known.

    The site's own has no endpoint of a connection's own: that is a setting.
    """

    name: str
    endpoint_url: str
    fees: str | None = None


def marketplace_at(address: str) -> MarketplaceAddress:
    """The marketplace at an address, which Amazon's is no more; an empty one is this site's own."""
    if not address:
        return _this_site()
    parts = _parts(address)
    ours = {_origin(_parts(url)) for url in (settings.MARKETPLACE_ENDPOINT_URL, settings.SITE_URL)}
    if _origin(parts) in ours:
        return _this_site()
    if _host(parts) in AMAZON_HOSTS:
        raise ConnectionUnfit(amazon_closed(), code="amazon_closed")
    return MarketplaceAddress(_name(parts), f"{parts.scheme}://{_netloc(parts)}{parts.path}")


def is_marketplace_here() -> bool:
    """Whether the marketplace that is called this site's is served by this very site."""
    return _origin(_parts(settings.MARKETPLACE_ENDPOINT_URL)) == _origin(_parts(settings.SITE_URL))


def _this_site() -> MarketplaceAddress:
    return MarketplaceAddress(THIS_SITE, "", settings.MARKETPLACE_FEE_SCHEDULE)


def _parts(address: str) -> SplitResult:
    """The address in lower case as far as that means the same, and only what leads somewhere."""
    try:
        parts = urlsplit(address.strip())
        is_valid = parts.port != 0 and bool(parts.hostname) and parts.scheme in PORTS
    except ValueError:
        is_valid = False
    if not is_valid or parts.username is not None or parts.query or parts.fragment:
        raise MarketplaceUnreachable(
            _(
                "“{address}” is not a marketplace's address: it needs http(s)://, a host and a "
                "path, and nothing else."
            ).format(address=address),
            code="not_an_address",
        )
    return parts._replace(path=parts.path.rstrip("/"))


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    return f"[{host}]" if ":" in host else host


def _origin(parts: SplitResult) -> tuple[str, int]:
    host = _host(parts)
    is_here = host in THIS_MACHINE or host.startswith("127.")
    # http and https of one host, each at its usual port, are one site.
    port = parts.port or PORTS[parts.scheme]
    return "localhost" if is_here else host, 443 if port == 80 else port


def _netloc(parts: SplitResult) -> str:
    port = parts.port
    own = "" if port in (None, PORTS[parts.scheme]) else f":{port}"
    return f"{_host(parts)}{own}"


def _name(parts: SplitResult) -> str:
    """The host; with its port where the host alone would be the name of a profile."""
    netloc = _netloc(parts)
    return f"{netloc}:{PORTS[parts.scheme]}" if netloc in PROFILES else netloc


def require_outside(endpoint_url: str) -> None:
    """Refuse addresses inside the site's own network, which a team has no business to call.

    It says so early and in words. What holds is that each connection is made to what
    `outside_addresses` returns then (hits.limits): a name's owner may let it lead elsewhere
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
