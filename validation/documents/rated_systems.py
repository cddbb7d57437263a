from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf

from django.utils.translation import gettext as _, gettext_noop, ngettext

from annotation.assignment_facts import AssignmentPrice
from annotation.study_facts import Raters
from error_codes import CodedText
from presentation.documents import Column, Row, Section, Table
from presentation.numbers import group_values, join_names
from stats.inference.two_systems import FEWEST_OFF_END
from stats.jackknife import is_uneven
from validation.analysis.rated_systems import (
    LEAST_ITEMS,
    ORDER,
    is_carried_by_few,
    is_decided,
    notes_of_counts,
)
from validation.analysis.records import RatedPairRecord, RatedSystemRecord
from validation.documents.metric_tables import QUESTION, SYSTEM
from validation.documents.purchases import DECIMALS, number_text, price_sentence, purchase_of
from validation.documents.terms import mean_on_scale, note_of_cuts, on_scale
from validation.results import Results

TITLE = gettext_noop("Which system is better")
TABLE_TITLE = gettext_noop("The systems as %(raters)s rate them, for new items and new annotators")
MOST_NAMED = 4
LEAST_P = 0.001


@dataclass(frozen=True)
class Verdict:
    """One question's best system, its lead, who is undecided and what to buy. `n_more_items` is 0
    if items would not settle it."""

    question: str
    best: str
    chance: CodedText
    others: str
    purchase: CodedText
    price: str
    notes: tuple[CodedText, ...]
    n_more_items: int = 0

    @property
    def sentences(self) -> list[str]:
        sentences = (self.best, self.chance, self.others, self.purchase, self.price, *self.notes)
        return [text for text in sentences if text]


def verdicts(results: Results, price: AssignmentPrice | None = None) -> Iterator[Verdict]:
    """For each question with two or more rated systems; purchases are priced if `price` is
    given."""
    pairs_of = group_values((pair.question, pair) for pair in results.rows(RatedPairRecord))
    systems_of = group_values((row.question, row) for row in results.rows(RatedSystemRecord))
    for question, systems in systems_of.items():
        yield verdict_of(
            question,
            systems,
            pairs_of[question],
            price,
            scale=results.scales.get(question),
            raters=results.raters,
        )


def verdict_of(
    question: str,
    systems: list[RatedSystemRecord],
    pairs: list[RatedPairRecord],
    price: AssignmentPrice | None,
    *,
    scale: tuple[float, float] | None = None,
    raters: Raters = Raters.PEOPLE,
) -> Verdict:
    """`systems` are best first; differences are cut at the ends of `scale`."""
    best = systems[0]
    widest = inf if scale is None else scale[1] - scale[0]
    pairs = [_within(pair, widest) for pair in pairs]
    against = {
        pair.b if pair.a == best.system else pair.a: pair
        for pair in pairs
        if best.system in (pair.a, pair.b)
    }
    open_rivals = rivals_of(systems, pairs)
    # what a test leaves open, beside what only waits for enough items
    open_by_p = [name for name in open_rivals if not _has_low_p(against.get(name), best.system)]
    purchase = purchase_of(best, open_rivals, open_by_p, against, widest)
    named = {"best": best.system, "question": question, "mean": number_text(best.mean)}
    named["raters"] = raters.named
    return Verdict(
        question=question,
        best=_("%(question)s: %(raters)s rate %(best)s highest, %(mean)s on average.") % named,
        chance=_chance(systems, open_rivals, against),
        others="" if has_too_few_items(best) else _others(systems, pairs),
        purchase=purchase.text,
        price=price_sentence(purchase.pair, best, price) if purchase.pair else "",
        notes=(*_notes(best), *_notes_of_ends(systems, pairs)),
        n_more_items=purchase.n_more_items,
    )


def _within(pair: RatedPairRecord, widest: float) -> RatedPairRecord:
    most = 1.0 if pair.test.startswith(ORDER) else widest
    low, high = on_scale(pair.delta, (pair.ci_low, pair.ci_high), (-most, most))
    return replace(pair, ci_low=low, ci_high=high)


def has_too_few_items(best: RatedSystemRecord) -> bool:
    return best.n_items < LEAST_ITEMS


def rivals_of(systems: Sequence[RatedSystemRecord], pairs: Sequence[RatedPairRecord]) -> list[str]:
    first = systems[0].system
    against = {frozenset((pair.a, pair.b)): pair for pair in pairs}
    names = [system.system for system in systems[1:]]
    return [one for one in names if not is_told_apart(against.get(frozenset((first, one))), first)]


def is_told_apart(pair: RatedPairRecord | None, best: str) -> bool:
    return pair is not None and pair.n_items >= LEAST_ITEMS and _has_low_p(pair, best)


def _has_low_p(pair: RatedPairRecord | None, best: str) -> bool:
    """Like `is_told_apart`, but for any number of items."""
    if pair is None or not is_decided(pair.p_adjusted, None):
        return False
    return (pair.delta or 0.0) > 0 if pair.a == best else (pair.delta or 0.0) < 0


def _chance(
    systems: list[RatedSystemRecord],
    open_rivals: list[str],
    against: dict[str, RatedPairRecord],
) -> CodedText:
    best, others = systems[0], systems[1:]
    if has_too_few_items(best):
        return CodedText(
            ngettext(
                "%(n)d item is too few for an answer: with others it may well come out otherwise.",
                "%(n)d items are too few for an answer: with others it may well come out "
                "otherwise.",
                best.n_items,
            )
            % {"n": best.n_items},
            code="too_few_items",
        )
    if not open_rivals:
        p = max(pair.p_adjusted or 0.0 for pair in against.values())
        text = ngettext(
            "That is hardly chance: it is ahead of %(told)s, and with other items and other "
            "annotators it would very probably be again (95 %% interval, p %(p)s).",
            "That is hardly chance: it is ahead of %(told)s, and with other items and other "
            "annotators it would very probably be again (95 %% intervals, each of its pair alone; "
            "largest p %(p)s, adjusted for all pairs).",
            len(others),
        )
        told = join_names(_leads(best.system, [one.system for one in others], against))
        text %= {"told": told, "p": f"= {p:.3f}" if p >= LEAST_P else f"< {LEAST_P}"}
        return CodedText(text, code="decided")
    values = {"rivals": join_names(_leads(best.system, open_rivals, against))}
    if len(open_rivals) == len(others):
        return CodedText(
            ngettext(
                "That could be chance: it is ahead of %(rivals)s (95 %% interval), and either may "
                "be better.",
                "That could be chance: it is ahead of %(rivals)s (95 %% intervals, each of its "
                "pair alone; what decides is p below .05, adjusted for all pairs), and either may "
                "be better.",
                len(others),
            )
            % values,
            code="undecided",
        )
    rest = [one.system for one in others if one.system not in open_rivals]
    text = _(
        "That it is ahead of %(rivals)s could be chance; that it is ahead of %(told)s is not (95 "
        "%% intervals, each of its pair alone; what decides is p below .05, adjusted for all "
        "pairs)."
    )
    values |= {"told": join_names(_leads(best.system, rest, against))}
    return CodedText(text % values, code="partly_decided")


def _leads(best: str, others: Sequence[str], against: Mapping[str, RatedPairRecord]) -> list[str]:
    known = others if len(others) <= MOST_NAMED else others[: MOST_NAMED - 1]
    leads = {name: _lead(against.get(name), best) for name in known}
    named = [f"{name} {lead}".strip() for name, lead in leads.items()]
    return [*named, *_named(list(others))[len(known) :]]


def _lead(pair: RatedPairRecord | None, best: str) -> str:
    if pair is None or pair.delta is None:
        return ""
    numbers = [pair.delta, pair.ci_low, pair.ci_high]
    if pair.a != best:
        numbers = [None if one is None else -one for one in (pair.delta, pair.ci_high, pair.ci_low)]
    is_order = pair.test.startswith(ORDER)
    delta, low, high = (
        number_text(one) if not is_order or one is None else f"{100 * one:.0f}" for one in numbers
    )
    values = {"n": delta, "low": low, "high": high}
    if numbers[1] is None or numbers[2] is None:
        text = _("by a net %(n)s in 100 answers") if is_order else _("by %(n)s")
    elif is_order:
        text = _("by a net %(n)s [%(low)s, %(high)s] in 100 answers")
    else:
        text = _("by %(n)s [%(low)s, %(high)s]")
    return text % values


def _others(systems: Sequence[RatedSystemRecord], pairs: Sequence[RatedPairRecord]) -> str:
    names = [one.system for one in systems[1:]]
    of_pair = {frozenset((pair.a, pair.b)): pair for pair in pairs}
    undecided = [
        _("%(a)s or %(b)s") % {"a": a, "b": b}
        for a, b in combinations(names, 2)
        if not any(is_told_apart(of_pair.get(frozenset((a, b))), one) for one in (a, b))
    ]
    if not undecided:
        return ""
    return _("Nor is it decided which is better of these: %(pairs)s.") % {
        "pairs": "; ".join(_named(undecided))
    }


def _named(systems: list[str]) -> list[str]:
    if len(systems) <= MOST_NAMED:
        return systems
    rest = len(systems) - MOST_NAMED + 1
    return [*systems[: MOST_NAMED - 1], ngettext("%(n)d other", "%(n)d others", rest) % {"n": rest}]


def _notes(best: RatedSystemRecord) -> tuple[CodedText, ...]:
    few_items, few_annotators = (
        list(notes_of_counts(best.n_items, 99)),
        list(notes_of_counts(99, best.n_annotators)),
    )
    notes = []
    if few_items:
        text = ngettext(
            "With %(n)d item only, this is a rough guide.",
            "With %(n)d items only, this is a rough guide.",
            best.n_items,
        )
        notes.append(CodedText(text % {"n": best.n_items}, code="few_items"))
    if few_annotators:
        text = ngettext(
            "With %(n)d annotator only, little can be said of others.",
            "With %(n)d annotators only, little can be said of others.",
            best.n_annotators,
        )
        notes.append(CodedText(text % {"n": best.n_annotators}, code="few_annotators"))
    return (*notes, *notes_of_share(best))


def notes_of_share(best: RatedSystemRecord) -> Iterator[CodedText]:
    if best.busiest_share is not None and is_uneven(best.busiest_share, best.n_annotators):
        text = _(
            "One of %(n)d annotators gave %(percent).0f %% of the ratings, so that less can be "
            "said of other annotators."
        )
        values = {"n": best.n_annotators, "percent": 100 * best.busiest_share}
        yield CodedText(text % values, code="uneven_annotators")


def _notes_of_ends(
    systems: list[RatedSystemRecord], pairs: list[RatedPairRecord]
) -> Iterator[CodedText]:
    if all(pair.test.startswith(ORDER) for pair in pairs):
        return
    few = {
        one.system: one.n_items_off_end
        for one in systems
        if one.n_items_off_end is not None and is_carried_by_few(one.n_items_off_end, one.n_items)
    }
    if len(few) == 1:
        [(system, n)] = few.items()
        text = ngettext(
            "Most ratings of %(system)s lie at one end of the scale, and %(n)d item carries its "
            "mean: a test of means is a rough guide.",
            "Most ratings of %(system)s lie at one end of the scale, and %(n)d items carry its "
            "mean: a test of means is a rough guide.",
            n,
        )
        yield CodedText(text % {"system": system, "n": n}, code="few_items_off_end")
    elif few:
        text = _(
            "Most ratings of %(systems)s lie at one end of the scale, and fewer than %(n)d items "
            "carry each mean: a test of means is a rough guide."
        )
        values = {"systems": join_names(_named(list(few))), "n": FEWEST_OFF_END}
        yield CodedText(text % values, code="few_items_off_end")


def rated_systems_table(results: Results) -> Table:
    records = results.rows(RatedSystemRecord)
    rows: list[Row] = [
        (
            row.question,
            row.system,
            mean_on_scale(
                results,
                row.question,
                row.mean,
                (row.ci_low, row.ci_high),
                DECIMALS,
                _("it has no judgment"),
            ),
            _rank(row),
            row.n_items,
            row.n_annotators,
            row.n_ratings,
        )
        for row in records
    ]
    cut = note_of_cuts(
        results, ((row.question, row.mean, (row.ci_low, row.ci_high)) for row in records)
    )
    note = _(
        "A rank is the range that the tests of every two systems leave open, adjusted by "
        "Holm's method over the pairs of a question; on fewer than 10 items none is told "
        "apart. The interval of a difference is of its pair alone: it may leave out 0 where "
        "the adjusted test does not tell the two apart."
    )
    return Table(
        name="rated-systems",
        caption=_(TABLE_TITLE) % {"raters": results.raters.named},
        columns=[
            QUESTION,
            SYSTEM,
            Column(_("Mean")),
            Column(_("Rank"), is_number=False),
            Column(_("Items")),
            Column(_("Annotators")),
            Column(_("Ratings")),
        ],
        rows=rows,
        note=" ".join(filter(None, [note, cut])),
    )


def _rank(row: RatedSystemRecord) -> str:
    low, high = row.rank_low, row.rank_high
    return str(low) if low == high else f"{low}–{high}"


def rated_systems_section(results: Results) -> Section:
    sentences = [" ".join(verdict.sentences) for verdict in verdicts(results)]
    table = rated_systems_table(results)
    return Section(_(TITLE), [*sentences, *([table] if table.rows else [])])
