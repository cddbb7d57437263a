"""The marketplaces that have a name of their own: this site's. Amazon's two have gone."""

from django.utils.translation import gettext as _

from error_codes import CodedText

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
    text = _("There is no marketplace profile '{profile}'. Profiles: {profiles}.")
    return CodedText(text.format(profile=name, profiles=profiles), code="unknown_profile")


def amazon_closed() -> str:
    """What to do in place of Amazon's marketplace."""
    return _(
        "Amazon closed Mechanical Turk on 2026-09-30. Use this site's own marketplace (profile "
        "local) or a connection to another Assay's; programs with Amazon's address in their code "
        "are led there by `python manage.py mturk_bridge`."
    )
