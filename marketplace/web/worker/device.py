"""What a request says of the device it came from."""

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.http import HttpRequest

from marketplace.hits.same_person import note_device
from marketplace.models import Assignment


def note_device_of(request: HttpRequest, assignment: Assignment) -> None:
    """Keep a print of the browser and network that an assignment was submitted from."""
    headers = ("User-Agent", "Accept-Language", "Sec-CH-UA-Platform")
    browser = "\n".join(request.headers.get(name, "")[:500] for name in headers)
    note_device(assignment, address=address_of(request), browser=browser)


def address_of(request: HttpRequest) -> str:
    """From where it came, as far as the proxies are believed."""
    return str(get_adapter(request).get_client_ip(request))


def country_of(request: HttpRequest) -> str:
    """The country that the proxy in front of the site says it came from; nothing where none
    does, or where it does not know."""
    name = settings.MARKETPLACE_COUNTRY_HEADER
    said = request.headers.get(name, "").strip().upper() if name else ""
    return said if len(said) == 2 and said.isascii() and said.isalpha() else ""
