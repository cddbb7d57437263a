"""What a request says of the device it came from."""

from allauth.account.adapter import get_adapter
from django.http import HttpRequest

from marketplace.hits.devices import note_device
from marketplace.models import Assignment


def note_device_of(request: HttpRequest, assignment: Assignment) -> None:
    """Keep a print of the browser and network that an assignment was submitted from."""
    headers = ("User-Agent", "Accept-Language", "Sec-CH-UA-Platform")
    browser = "\n".join(request.headers.get(name, "")[:500] for name in headers)
    address = str(get_adapter(request).get_client_ip(request))
    note_device(assignment, address=address, browser=browser)
