"""The marketplaces that have a name of their own: this site's, and Amazon's two."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """A marketplace by name; one without an endpoint is configured by the site's settings."""

    name: str
    endpoint_url: str | None
    note: str = ""


PROFILES = {
    "local": Profile("local", None),
    "sandbox": Profile(
        "sandbox",
        "https://mturk-requester-sandbox.us-east-1.amazonaws.com",
        "retired by AWS on 2026-09-30",
    ),
    "production": Profile(
        "production",
        "https://mturk-requester.us-east-1.amazonaws.com",
        "retired by AWS on 2026-09-30",
    ),
}
