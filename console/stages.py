"""How a study or a collection stands with each of its stages, as the navigation shows it."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext_lazy

DONE, ACTIVE, NEEDS_YOU, LATER = "done", "active", "needs-you", "later"
# The words beside the signs, for those who do not see them.
WORDS = {
    DONE: gettext_lazy("done"),
    ACTIVE: gettext_lazy("under way"),
    NEEDS_YOU: gettext_lazy("needs you"),
    LATER: gettext_lazy("not yet"),
}
SIGNS = {DONE: "✓", ACTIVE: "◐", NEEDS_YOU: "!", LATER: "○"}


@dataclass(frozen=True)
class Stage:
    """A stage: its page, how it stands, and a few words about it."""

    name: str
    title: str
    url: str
    state: str
    detail: str
    group: str

    @property
    def words(self) -> str:
        return str(WORDS[self.state])

    @property
    def sign(self) -> str:
        return SIGNS[self.state]
