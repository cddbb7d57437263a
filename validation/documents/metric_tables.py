from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter

from django.utils.translation import gettext as _, gettext_noop

from error_codes import CodedText
from presentation.documents import Column, Number, P, Row, Table
from presentation.numbers import group_values, join_names
from validation.analysis.records import (
    CeilingRecord,
    ComparisonRecord,
    CorrelationRecord,
    PanelRecord,
    PlanRecord,
    SensitivityRecord,
)
from validation.documents.metrics_answers import names_of, top_groups
from validation.documents.terms import (
    CEILING_WARNINGS,
    CHOICES,
    COEFFICIENTS,
    LEVELS,
    POLICIES,
    TESTS,
    Limits,
    correlation,
    difference_within,
    family,
    name_of,
    note_of_cut_differences,
    p_cell,
    reason_in_words,
    signed,
    statistic,
)
from validation.results import ALL, MEAN, Results, measure_of

MEAN_OF_CONDITIONS = "mean of conditions"
EVERY = "all"
QUESTION, CONDITION = (
    Column(gettext_noop("Question"), is_number=False),
    Column(gettext_noop("Condition"), is_number=False),
)
METRIC, SYSTEM = (
    Column(gettext_noop("Metric"), is_number=False),
    Column(gettext_noop("System"), is_number=False),
)


NO_SHARE_INTERVAL = gettext_noop(
    "the interval of the ceiling reaches 0, of which there is no share"
)


def condition_text(record: PanelRecord) -> str:
    return record.by or (MEAN_OF_CONDITIONS if record.scope == MEAN else EVERY)


def correlations_table(results: Results, level: str, **of_records: str) -> Table:
    coefficients = [
        name
        for name in results.coefficients
        if any((one.level, one.coefficient) == (level, name) for one in results.measures)
    ]
    return Table(
        name=f"correlations-{level}",
        caption=_("Correlation of metrics with human ratings, %(level)s, with intervals")
        % {"level": name_of(LEVELS, level)},
        columns=[
            QUESTION,
            CONDITION,
            METRIC,
            *(Column(name_of(COEFFICIENTS, name)) for name in coefficients),
            Column(_("Groups used")),
            Column(_("Candidates scored")),
            Column(_("Rank")),
        ],
        rows=[
            (
                first.question,
                condition_text(first),
                results.label(first),
                *(correlation(results, of_one.get(name)) for name in coefficients),
                _("%(n_used)s of %(n_groups)s")
                % {"n_used": f"{first.n_used:,}", "n_groups": f"{first.n_groups:,}"},
                _("%(n_scored)s of %(n_candidates)s")
                % {"n_scored": f"{first.n_scored:,}", "n_candidates": f"{first.n_candidates:,}"},
                "" if first.cluster is None else str(first.cluster),
            )
            for of_one in _by_metric(results.rows(CorrelationRecord, level=level, **of_records))
            for first in [of_one.get(results.coefficient) or next(iter(of_one.values()))]
        ],
        note=_(
            "Groups used and rank are those of %(counted)s; metrics that share a rank do "
            "not differ significantly."
        )
        % {"counted": name_of(COEFFICIENTS, results.coefficient)},
    )


def _by_metric(records: list[CorrelationRecord]) -> Iterator[dict[str, CorrelationRecord]]:
    groups: dict[tuple[str, ...], dict[str, CorrelationRecord]] = {}
    for record in records:
        key = (record.question, record.scope, record.by, record.metric, record.signature)
        groups.setdefault(key, {})[record.coefficient] = record
    yield from groups.values()


def coverage_table(results: Results) -> Table:
    records = results.rows(CorrelationRecord, level=results.level, coefficient=results.coefficient)
    counts = {
        "n_candidates": _("Candidates"),
        "n_scored": _("Scored"),
        "n_unscored": _("Without a score"),
        "n_undefined_scores": _("Undefined score"),
        "n_unparsed": _("Unread score"),
        "n_groups": _("Groups"),
        "n_used": _("Used"),
        "n_constant_human": _("Constant human values"),
        "n_constant_metric": _("Constant metric"),
        "n_too_few": _("Too few"),
    }
    rows: list[Row] = [
        (r.question, condition_text(r), results.label(r), *(getattr(r, name) for name in counts))
        for r in records
    ]
    return Table(
        name="coverage",
        caption=_("Coverage of %(statistic)s")
        % {"statistic": statistic(results.coefficient, results.level)},
        columns=[QUESTION, CONDITION, METRIC, *map(Column, counts.values())],
        rows=rows,
    )


def ceilings_table(results: Results) -> Table:
    columns = [
        QUESTION,
        CONDITION,
        Column(_("Level"), is_number=False),
        Column(_("Coefficient"), is_number=False),
        Column(_("Ceiling")),
        Column(_("One more person")),
        Column(_("Best metrics"), is_number=False),
        Column(_("Share of ceiling, %")),
    ]
    leaders = top_groups(results)
    records = results.rows(CeilingRecord)
    return Table(
        name="ceilings",
        caption=_("What a perfect metric could reach, given how well annotators agree"),
        columns=columns,
        rows=[
            _ceiling_row(results, record, leaders.get(measure_of(record), [])) for record in records
        ],
        note=_(
            "One more person: the mean correlation of one annotator with the mean of the others. "
            "Best metrics: the greatest value first, with those that do not differ significantly; "
            "the share is the first one's. Both it and the ceiling are estimates: a share may lie "
            "above 100, by chance, or where few candidates or a rank coefficient, whose ceiling is "
            "an approximation, set the ceiling too low. Intervals are for new items rated by these "
            "very annotators, not by others, and do not count that in; rank correlations of "
            "systems have none. Ceilings by item assume that outputs differ by degrees: they may "
            "be wrong if outputs fall into a few classes of equal quality."
        )
        + "".join(f" {warning}" for warning in ceiling_warnings(records)),
    )


def ceiling_warnings(records: Iterable[CeilingRecord]) -> Iterator[CodedText]:
    measures: dict[str, dict[str, None]] = {}
    for record in records:
        if record.warning is not None:
            named = statistic(record.coefficient, record.level)
            measures.setdefault(record.warning, {})[f"{record.question} ({named})"] = None
    for warning, names in measures.items():
        yield CodedText(
            _("Ceilings of %(measures)s are unreliable: %(why)s.")
            % {
                "measures": join_names(list(names)),
                "why": CEILING_WARNINGS[warning],
            },
            code="ceiling_unreliable",
        )


def _ceiling_row(results: Results, record: CeilingRecord, leaders: list[CorrelationRecord]) -> Row:
    best = leaders[0] if leaders else None
    share = None if best is None else best.share_of_ceiling
    # Of a ceiling that may be 0 the ratio has no finite limits, whatever the delta method says.
    may_be_none = record.attainable_low is not None and record.attainable_low <= 0
    low, high = (None, None) if best is None or may_be_none else (best.share_low, best.share_high)
    reason = reason_in_words(record.reason) or "undefined"
    return (
        record.question,
        condition_text(record),
        name_of(LEVELS, record.level),
        name_of(COEFFICIENTS, record.coefficient),
        Number(
            record.attainable,
            low=record.attainable_low,
            high=record.attainable_high,
            reason=reason,
            signature=signed(results, "ceiling", record),
        ),
        Number(
            record.leave_one_out,
            reason=reason,
            signature=signed(results, "ceiling.leave_one_out", record),
        ),
        names_of(results, leaders),
        Number(
            None if share is None else share * 100,
            0,
            low=_percent(low),
            high=_percent(high),
            reason=reason,
            no_interval=_(NO_SHARE_INTERVAL) if may_be_none else "",
            signature="" if best is None else signed(results, "correlation.share", best),
        ),
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else share * 100


NEW = gettext_noop(
    "On the left: other items, but these very systems. On the right: other systems of this kind "
    "too, with p from six systems on."
)


def comparisons_table(results: Results, question: str) -> Table:
    records = results.rows(
        ComparisonRecord,
        question=question,
        scope=ALL,
        level=results.level,
        coefficient=results.coefficient,
    )
    both = results.settings.resample == "items"
    group = _("These systems") if both else ""
    new = _("New systems of this kind")
    rows: list[Row] = [
        (
            *results.pair_labels(record),
            Number(
                record.delta,
                3,
                *difference_within(record.delta, _limits(record), record.coefficient),
                reason_in_words(record.reason),
                signed(results, "comparison.delta", record),
            ),
            *(p_cell(results, record, name) for name in ("p", "p_holm", "p_bh")),
            *(
                (
                    _new_systems_cell(record),
                    P(record.new_systems_p_holm, reason_in_words(record.new_systems_reason)),
                )
                if both
                else ()
            ),
        )
        for record in records
    ]
    names = (_("Metric"), _("against")), (_("Difference"), "p", _("p (Holm)"), _("p (B.–H.)"))
    return Table(
        name=f"comparisons-q{results.questions.index(question) + 1}",
        caption=_("%(question)s: metrics tested pair by pair, %(statistic)s")
        % {"question": question, "statistic": statistic(results.coefficient, results.level)},
        columns=[
            *(Column(name, is_number=False) for name in names[0]),
            *(Column(name, group=group) for name in names[1]),
            *((Column(_("Interval"), group=new), Column(_("p (Holm)"), group=new)) if both else ()),
        ],
        rows=rows,
        note=_note(results, records) if records else "",
    )


def _note(results: Results, records: Sequence[ComparisonRecord]) -> str:
    both = results.settings.resample == "items"
    text = _("By %(tests)s; two-sided. %(family)s %(both)s") % {
        "tests": join_names(sorted({name_of(TESTS, record.test) for record in records})),
        "family": family(results.all_inputs),
        "both": _(NEW) if both else "",
    }
    shown = [(record.delta, _limits(record)) for record in records]
    if both:
        shown += [(record.delta, _new_systems_limits(record)) for record in records]
    return f"{text} {note_of_cut_differences(results.coefficient, shown)}".strip()


def _limits(record: ComparisonRecord) -> Limits:
    return record.ci_low, record.ci_high


def _new_systems_limits(record: ComparisonRecord) -> Limits:
    return record.new_systems_low, record.new_systems_high


def _new_systems_cell(record: ComparisonRecord) -> Number:
    return Number(
        record.delta if record.new_systems_low is not None else None,
        3,
        *difference_within(record.delta, _new_systems_limits(record), record.coefficient),
        reason_in_words(record.new_systems_reason),
    )


def sensitivity_table(results: Results) -> Table:
    of = {"level": results.level, "scope": (ALL, MEAN)}
    records = results.rows(SensitivityRecord, **of)
    base = {_key(row): row for row in results.rows(CorrelationRecord, **of)}
    titles = (_("Policy"), _("Instead of"), _("Choice"), _("Coefficient"))
    return Table(
        name="sensitivity",
        caption=_("What other policies would give, %(level)s")
        % {"level": name_of(LEVELS, results.level)},
        columns=[
            QUESTION,
            CONDITION,
            *(Column(title, is_number=False) for title in titles),
            METRIC,
            Column(_("Value")),
            Column(_("Would be")),
            Column(_("Rank"), is_number=False),
        ],
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


PAIR = ("metric_a", "signature_a", "metric_b", "signature_b")


def curves_of(results: Results) -> list[list[PlanRecord]]:
    """By question, measure and pair; the least power at the study's size comes first."""
    key_of = attrgetter("question", "level", "coefficient", *PAIR)
    curves = group_values((key_of(row), row) for row in results.rows(PlanRecord))
    return sorted(
        curves.values(),
        key=lambda curve: next((row.power or 0.0 for row in curve if row.is_pilot), 0.0),
    )


def sample_size_table(results: Results, curves: Sequence[Sequence[PlanRecord]]) -> Table:
    rows: list[Row] = [
        (
            first.question,
            statistic(first.coefficient, first.level),
            *results.pair_labels(first),
            Number(row.n_annotators, 1, reason="unknown"),
            Number(row.power, reason="undefined", signature=_signature(results, row)),
            "more than were tried" if row.items_needed is None else f"{row.items_needed:,}",
        )
        for curve in curves
        for first in curve[:1]
        for row in curve
        if row.is_pilot
    ]
    power = next((row.power_wanted for curve in curves for row in curve), 0.8)
    return Table(
        name="planning",
        caption=f"Items needed to tell two metrics apart with a power of {power:.0%}",
        columns=[
            QUESTION,
            *(Column(title, is_number=False) for title in ("Measure", "Metric", "against")),
            Column("Ratings each"),
            Column("Power of as many items as here"),
            Column("Items needed"),
        ],
        rows=rows,
        note=_(
            "Studies of other sizes are drawn from the items of this one, of these very systems: "
            "where the two metrics differ here by luck, that luck is planned for. More ratings of "
            "each candidate, by annotators like these, take noise from both correlations as far "
            "as the annotators agree on what the measure compares; by how much studies differ is "
            "taken as unchanged, and of a rank coefficient values as normal. Whether the metrics "
            "differ on new systems is another question."
        ),
    )


def _signature(results: Results, record: PlanRecord) -> str:
    drawn = {"test": "resampled-studies", "n_draws": record.n_studies}
    return signed(results, f"power.{record.n_items}", record, **drawn)
