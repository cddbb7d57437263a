"""The addresses of studies of recorded dialogues, and what each needs; whoever adds one adds a line
here."""

from django.urls import reverse

from accounts.roles import Permission

PAGES_OF_DIALOGUES = {
    "dialogues": Permission.VIEW,
    "dialogues-picture": Permission.VIEW,
    "dialogues-download": Permission.EXPORT,
}
OF_DIALOGUES: dict[str, dict[str, object]] = {
    "dialogues": {"slug": "outcomes"},
    "dialogues-picture": {"slug": "outcomes", "chart": "order", "form": "json"},
    "dialogues-download": {"slug": "outcomes", "name": "order.csv"},
}
# For anybody signed in.
NEW_DIALOGUES = {"new-dialogue-study"}


def address_of_dialogues(name: str) -> str:
    """An address of the study `outcomes`."""
    return reverse(f"console:{name}", kwargs=OF_DIALOGUES[name])
