"""Tables of how each setting moves values and ranks."""

from __future__ import annotations

from django.utils.translation import gettext as _

from presentation.documents import Column, Number, Row, Table
from validation.analysis.records import (
    CorrelationRecord,
    SensitivityRecord,
)
from validation.documents.cells import signed
from validation.documents.tables import CONDITION, METRIC, QUESTION, condition_text
from validation.documents.terms import (
    CHOICES,
    COEFFICIENTS,
    LEVELS,
    POLICIES,
    name_of,
    reason_in_words,
)
from validation.results import ALL, MEAN, Results


def sensitivity_table(results: Results) -> Table:
    """What each policy would have changed, over all conditions and as the mean of them."""
    of = {"level": results.level, "scope": (ALL, MEAN)}
    records = results.rows(SensitivityRecord, **of)
    base = {_key(row): row for row in results.rows(CorrelationRecord, **of)}
    titles = (_("Policy"), _("Instead of"), _("Choice"), _("Coefficient"))
    columns = [
        QUESTION,
        CONDITION,
        *(Column(title, is_number=False) for title in titles),
        METRIC,
        Column(_("Value")),
        Column(_("Would be")),
        Column(_("Rank"), is_number=False),
    ]
    return Table(
        name="sensitivity",
        caption=_("What other policies would give, %(level)s")
        % {"level": name_of(LEVELS, results.level)},
        columns=columns,
        rows=[_sensitivity_row(results, record, base[_key(record)]) for record in records],
    )


def _key(record: CorrelationRecord | SensitivityRecord) -> tuple[str, ...]:
    key = (record.question, record.scope, record.by, record.coefficient)
    return (*key, record.metric, record.signature)


def _sensitivity_row(results: Results, record: SensitivityRecord, base: CorrelationRecord) -> Row:
    return (
        record.question,
        condition_text(record),
        name_of(POLICIES, record.setting),
        name_of(CHOICES, record.base_choice),
        name_of(CHOICES, record.choice),
        name_of(COEFFICIENTS, record.coefficient),
        results.label(record),
        Number(
            record.base_value,
            3,
            reason=reason_in_words(base.reason),
            signature=signed(results, "correlation", base),
        ),
        Number(
            record.value,
            3,
            reason=reason_in_words(record.reason),
            signature=signed(results, "sensitivity", record),
        ),
        _move(record.base_rank, record.rank),
    )


def _move(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return ""
    return f"{before:g}" if before == after else f"{before:g} → {after:g}"
