from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from socket import SOCK_STREAM, getaddrinfo

from django.conf import settings

# IPv6 addresses whose last 32 bits are an IPv4 address: that a gateway calls (RFC 6052), of a form
# that is used no longer (RFC 4291, 2.5.5.1), and as a translator writes them (RFC 2765, 2.1).
WITH_IPV4 = (
    IPv6Network("64:ff9b::/96"),
    IPv6Network("::/96"),
    IPv6Network("::ffff:0:0:0/96"),
)

# Of IANA's registries of special purposes, some of which Python before 3.11.10 calls global.
SPECIAL = (
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
    # A cloud's host, from within its machines.
    IPv4Network("168.63.129.16/32"),
    IPv6Network("fec0::/10"),
    IPv6Network("5f00::/16"),
    IPv6Network("64:ff9b:1::/48"),
    IPv6Network("2001::/23"),
    IPv6Network("3fff::/20"),
)


def checked_addresses(host: str) -> list[str] | None:
    """The addresses of a host to connect to: none where any will do, None where one is inside.

    On a machine of one's own they are one's own. Whoever connects by the name looks it up anew, and
    its owner may let it lead elsewhere by then.
    """
    if settings.OWN_MACHINE:
        return []
    addresses = list(
        dict.fromkeys(str(entry[4][0]) for entry in getaddrinfo(host, None, type=SOCK_STREAM))
    )
    return addresses if all(is_public(address.partition("%")[0]) for address in addresses) else None


def is_public(text: str) -> bool:
    address = ip_address(text)
    called = _inner(address) or address if isinstance(address, IPv6Address) else address
    is_special = any(called in network for network in SPECIAL)
    return called.is_global and not called.is_multicast and not is_special


def _inner(address: IPv6Address) -> IPv4Address | None:
    if any(address in network for network in WITH_IPV4):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)
