"""What is said of answers that a program made up, wherever results are handed on."""

from __future__ import annotations

from enum import Enum

from django.core.cache import cache
from django.db.models import Count, Q
from django.utils.translation import gettext as _

from annotation.models import Study, Submission


class Raters(Enum):
    """Whose answers a result is of, as the subject of a sentence: each is a plural."""

    PEOPLE = "people"
    SIMULATED = "simulated"
    BOTH = "both"

    @property
    def subject(self) -> str:
        if self is Raters.BOTH:
            return _("People and simulated workers")
        return _("People") if self is Raters.PEOPLE else _("Simulated workers")

    @property
    def named(self) -> str:
        if self is Raters.BOTH:
            return _("people and simulated workers")
        return _("people") if self is Raters.PEOPLE else _("simulated workers")


def raters_of(study: Study) -> Raters:
    """Who gave a study's answers, by what the answers say of themselves."""
    counts = _counts(study)
    if not counts["simulated"]:
        return Raters.PEOPLE
    return Raters.SIMULATED if counts["simulated"] == counts["all"] else Raters.BOTH


def has_simulated(study: Study) -> bool:
    """Whether any answer of a study is simulated, as programs read it."""
    return bool(_counts(study)["simulated"])


def simulation_notice(study: Study) -> str:
    """That answers are simulated, and how many; empty where none says so."""
    counts = _counts(study)
    if not counts["simulated"]:
        return ""
    if counts["simulated"] == counts["all"]:
        whose = _("Every answer of this study is simulated: the results are nobody's opinion.")
    else:
        text = _(
            "%(simulated)s of the %(all)s submissions of this study are simulated: they are "
            "nobody's opinion."
        )
        whose = text % {name: f"{n:,}" for name, n in counts.items()}
    circular = _(
        "Simulated workers go by the words that a candidate shares with its reference, so that "
        "metrics which count shared words agree with them whatever they are worth."
    )
    return f"{whose} {circular}"


def _counts(study: Study) -> dict[str, int]:
    """Counted once for each version of the judgments."""
    key = f"simulated:{study.pk}:{study.judgments_version}"
    counts: dict[str, int] | None = cache.get(key)
    if counts is None:
        counts = Submission.objects.of(study).aggregate(
            all=Count("pk"), simulated=Count("pk", filter=Q(is_simulated=True))
        )
        cache.set(key, counts)
    return counts
