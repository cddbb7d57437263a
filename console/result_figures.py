"""Which system comes first on each question, for a study's first page."""

from __future__ import annotations

from collections.abc import Iterator

from django.utils.translation import gettext as _

from annotation.models import Study
from console.human_results_view import PAIR_FIELDS, SYSTEM_FIELDS
from console.result_sentences import Scale, Standing
from validation.analysis.human_results import ALL
from validation.analysis.rating_records import RatedPairRecord, RatedSystemRecord
from validation.human_results import human_results_fingerprint
from validation.models import HumanResultsPair, HumanResultsQuestion, HumanResultsSystem

MOST_QUESTIONS = 4


def leader_figures(study: Study) -> Iterator[tuple[str, str, str]]:
    """A label, the system, and its value with how sure that is; nothing is computed here."""
    for question, standing in _standings(study):
        if len(standing.systems) > 1 and (first := standing.systems[0]).mean is not None:
            label = _("First, %(question)s") % {"question": question}
            limits = standing.scale.interval(first)
            value = f"{standing.scale.value(first.mean)} {limits}".strip()
            yield label, first.system, f"{value}; {standing.sureness}"


def _standings(study: Study) -> Iterator[tuple[str, Standing]]:
    """Of all judgments together, question by question, as of the study's current results."""
    current = {"study": study, "fingerprint": human_results_fingerprint(study)}
    of_current = HumanResultsQuestion.objects.filter(
        **{f"version__{name}": value for name, value in current.items()}
    )
    questions = list(of_current.order_by("-version", "pk")[:MOST_QUESTIONS])
    if not questions:
        return
    of_all = {"version": questions[0].version_id, "scope": ALL}
    system_rows = HumanResultsSystem.objects.filter(**of_all).values_list(*SYSTEM_FIELDS)
    pair_rows = HumanResultsPair.objects.filter(**of_all).values_list(*PAIR_FIELDS)
    systems = [RatedSystemRecord(*row) for row in system_rows]
    pairs = [RatedPairRecord(*row) for row in pair_rows]
    for one in questions:
        if one.version_id != questions[0].version_id:
            break  # computed before, of the same judgments
        yield (
            one.question,
            Standing(
                Scale(one.measure, one.scale_low, one.scale_high),
                [row for row in systems if row.question == one.question],
                [row for row in pairs if row.question == one.question],
            ),
        )
