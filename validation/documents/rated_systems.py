"""Which system people rate higher, in sentences that need no statistics, and as tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from stats.inference.scale_ends import FEWEST_OFF_END
from stats.inference.two_systems import least_distinguishable
from validation.analysis.rated_systems import (
    LEAST_ITEMS,
    ORDER,
    is_decided,
    notes_of_counts,
)
from validation.analysis.rating_records import RatedPairRecord, RatedSystemRecord
from validation.documents.documents import Column, Row, Section, Table
from validation.documents.purchase_prices import AssignmentPrice, price_sentence
from validation.documents.scale_limits import mean_on_scale, note_of_cuts
from validation.documents.tables import QUESTION, SYSTEM
from validation.documents.terms import listed
from validation.results import Results

TITLE = gettext_noop("Which system is better")
MOST_NAMED = 4
DECIMALS = 2
LEAST_P = 0.001


@dataclass(frozen=True)
class Verdict:
    """Of one question: which system is best, whether that could be chance, what to buy next.

    `n_more_items` are the items that the purchase asks for; 0 where items would not settle it.
    """

    question: str
    best: str
    chance: str
    purchase: str
    price: str
    notes: tuple[str, ...]
    n_more_items: int = 0

    @property
    def sentences(self) -> list[str]:
        sentences = (self.best, self.chance, self.purchase, self.price, *self.notes)
        return [text for text in sentences if text]


def verdicts(results: Results, price: AssignmentPrice | None = None) -> Iterator[Verdict]:
    """One for each question under which people rated two or more systems.

    What to buy next is priced where a `price` is known.
    """
    pairs_of: dict[str, list[RatedPairRecord]] = {}
    for pair in results.rows(RatedPairRecord):
        pairs_of.setdefault(pair.question, []).append(pair)
    systems_of: dict[str, list[RatedSystemRecord]] = {}
    for system in results.rows(RatedSystemRecord):
        systems_of.setdefault(system.question, []).append(system)
    for question, systems in systems_of.items():
        yield verdict_of(question, systems, pairs_of.get(question, []), price)


def verdict_of(
    question: str,
    systems: list[RatedSystemRecord],
    pairs: list[RatedPairRecord],
    price: AssignmentPrice | None,
) -> Verdict:
    """Of one question's systems, best first."""
    best = systems[0]
    against = {
        pair.b if pair.a == best.system else pair.a: pair
        for pair in pairs
        if best.system in (pair.a, pair.b)
    }
    open_rivals = rivals_of(systems, pairs)
    # what a test leaves open, beside what only waits for enough items
    open_by_p = [name for name in open_rivals if not _has_low_p(against.get(name), best.system)]
    rival = _nearest_rival(open_by_p, against) or _nearest_rival(open_rivals, against)
    if has_too_few_items(best) or (rival and rival[0].n_items < LEAST_ITEMS):
        rival = _with_enough_items(rival, open_by_p)
    named = {"best": best.system, "question": question, "mean": _number(best.mean)}
    return Verdict(
        question=question,
        best=_("%(question)s: people rate %(best)s highest, %(mean)s on average.") % named,
        chance=_chance(systems, open_rivals, against),
        purchase=_purchase(best, open_by_p if has_too_few_items(best) else open_rivals, rival),
        price=price_sentence(rival[0], best, price) if rival else "",
        notes=(*_notes(best), *_notes_of_ends(systems, pairs)),
        n_more_items=_more_items(best, rival),
    )


def has_too_few_items(best: RatedSystemRecord) -> bool:
    """Whether there is no answer yet to which system is best, whatever the tests say."""
    return best.n_items < LEAST_ITEMS


def rivals_of(systems: Sequence[RatedSystemRecord], pairs: Sequence[RatedPairRecord]) -> list[str]:
    """Those that the first is not told apart from."""
    first = systems[0].system
    against = {frozenset((pair.a, pair.b)): pair for pair in pairs}
    names = [system.system for system in systems[1:]]
    return [one for one in names if not is_told_apart(against.get(frozenset((first, one))), first)]


def is_told_apart(pair: RatedPairRecord | None, best: str) -> bool:
    """Whether the best is ahead of the other beyond chance, and not behind it by their order."""
    return pair is not None and pair.n_items >= LEAST_ITEMS and _has_low_p(pair, best)


def _has_low_p(pair: RatedPairRecord | None, best: str) -> bool:
    """Whether a test has the best ahead, on however few items."""
    if pair is None or not is_decided(pair.p_adjusted, None):
        return False
    return (pair.delta or 0.0) > 0 if pair.a == best else (pair.delta or 0.0) < 0


def _chance(
    systems: list[RatedSystemRecord],
    open_rivals: list[str],
    against: dict[str, RatedPairRecord],
) -> str:
    best, others = systems[0], systems[1:]
    if has_too_few_items(best):
        text = ngettext(
            "%(n)d item is too few for an answer: with others it may well come out otherwise.",
            "%(n)d items are too few for an answer: with others it may well come out otherwise.",
            best.n_items,
        )
        return text % {"n": best.n_items}
    if not open_rivals:
        p = max(pair.p_adjusted or 0.0 for pair in against.values())
        text = ngettext(
            "That is hardly chance: with other items and other annotators it would again be "
            "ahead of the other system (p %(p)s).",
            "That is hardly chance: with other items and other annotators it would again be "
            "ahead of each of the others (largest p %(p)s, adjusted for all pairs).",
            len(others),
        )
        return text % {"p": f"= {p:.3f}" if p >= LEAST_P else f"< {LEAST_P}"}
    values = {"rivals": listed(_named(open_rivals))}
    if len(open_rivals) == len(others):
        return _("That could be chance: it is not told apart from %(rivals)s.") % values
    rest = [one.system for one in others if one.system not in open_rivals]
    return _(
        "That it is ahead of %(rivals)s could be chance; that it is ahead of %(told)s is not."
    ) % (values | {"told": listed(_named(rest))})


def _named(systems: list[str]) -> list[str]:
    if len(systems) <= MOST_NAMED:
        return systems
    rest = len(systems) - MOST_NAMED + 1
    more = ngettext("%(n)d other", "%(n)d others", rest) % {"n": rest}
    return [*systems[: MOST_NAMED - 1], more]


def _nearest_rival(
    open_rivals: list[str], against: dict[str, RatedPairRecord]
) -> tuple[RatedPairRecord, str] | None:
    """The comparison that is nearest to being told apart, and whose it is."""
    known = (
        (pair, rival)
        for rival in open_rivals
        if (pair := against.get(rival)) is not None and pair.se is not None and pair.delta
    )
    return next(known, None)


def _with_enough_items(
    nearest: tuple[RatedPairRecord, str] | None, open_rivals: list[str]
) -> tuple[RatedPairRecord, str] | None:
    """The same comparison with items enough for an answer; annotators alone never give one."""
    if nearest is None:
        return None
    pair, rival = nearest
    needed: int | None = LEAST_ITEMS
    if rival in open_rivals:
        needed = pair.items_needed and max(pair.items_needed, LEAST_ITEMS)
    return replace(pair, items_needed=needed, annotators_needed=None), rival


def _more_items(best: RatedSystemRecord, nearest: tuple[RatedPairRecord, str] | None) -> int:
    if nearest is None:
        return max(0, LEAST_ITEMS - best.n_items)
    return max(0, (nearest[0].items_needed or 0) - nearest[0].n_items)


def _purchase(
    best: RatedSystemRecord,
    open_rivals: list[str],
    nearest: tuple[RatedPairRecord, str] | None,
) -> str:
    """What would settle it with the rival that is nearest to being told apart."""
    if has_too_few_items(best) and (nearest is None or not open_rivals):
        text = _("Buy next: %(items)s items in all instead of %(now)s; with fewer, no answer.")
        return text % {"items": LEAST_ITEMS, "now": best.n_items}
    if not open_rivals:
        return _("Buy next: nothing; no more ratings are needed to know that.")
    if nearest is None:
        return _("There is too little to say how many more ratings would settle it.")
    pair, rival = nearest
    items = _more_than(pair.items_needed, pair.n_items)
    annotators = _more_than(pair.annotators_needed, pair.n_annotators)
    difference = abs(pair.delta or 0.0)
    values = {
        "rival": rival,
        "difference": _difference(pair, difference),
        "items": items,
        "annotators": annotators,
        "now": pair.n_items,
        "least": _difference(pair, least_distinguishable(pair.se or 0.0, pair.freedom or 0.0)),
    }
    is_reckoned = pair.items_needed is not None or pair.annotators_needed is not None
    if is_reckoned and items is None and annotators is None:
        return _(STRICTER) % values
    text = _WAYS[items is not None, annotators is not None]
    return " ".join([_(text) % values, _(SMALLER) % values])


def _more_than(needed: int | None, present: int) -> int | None:
    """What would be needed, unless there is as much already: it is reckoned for this pair alone and
    for means of many, and the test of the pair can be stricter."""
    return needed if needed is not None and needed > present else None


def _difference(pair: RatedPairRecord, value: float) -> str:
    """A difference of means; on an ordinal scale how much oftener one is rated above the other."""
    if not pair.test.startswith(ORDER):
        return _("%(n)s between the means") % {"n": _number(value)}
    return _("%(n)s %% of ratings, those above less those below") % {"n": f"{100 * value:.0f}"}


SMALLER = gettext_noop("As it stands, the study could tell apart differences over about %(least)s.")
STRICTER = gettext_noop(
    "Buy next: more items. How many cannot be said: for a difference as large as that from "
    "%(rival)s (%(difference)s) the %(now)s there are would commonly do, and its test, stricter "
    "where p is adjusted for many pairs or few ratings carry a mean, does not tell the two apart."
)
_WAYS = {
    (True, True): gettext_noop(
        "Buy next: about %(items)s items in all instead of %(now)s, or the same items rated by "
        "%(annotators)s annotators; either would show a difference as large as that from "
        "%(rival)s (%(difference)s) four times in five."
    ),
    (True, False): gettext_noop(
        "Buy next: about %(items)s items in all instead of %(now)s; they would show a difference "
        "as large as that from %(rival)s (%(difference)s) four times in five."
    ),
    (False, True): gettext_noop(
        "Buy next: the same items rated by about %(annotators)s annotators in all; more items "
        "alone would not settle it, since the annotators disagree on which is better. They would "
        "show a difference as large as that from %(rival)s (%(difference)s) four times in five."
    ),
    (False, False): gettext_noop(
        "Buy next: both more items and more annotators; neither alone would show a difference as "
        "small as that from %(rival)s (%(difference)s)."
    ),
}


def _notes(best: RatedSystemRecord) -> tuple[str, ...]:
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
        notes.append(text % {"n": best.n_items})
    if few_annotators:
        text = ngettext(
            "With %(n)d annotator only, little can be said of others.",
            "With %(n)d annotators only, little can be said of others.",
            best.n_annotators,
        )
        notes.append(text % {"n": best.n_annotators})
    return tuple(notes)


def _notes_of_ends(systems: list[RatedSystemRecord], pairs: list[RatedPairRecord]) -> Iterator[str]:
    """Which means are carried by few items; a test of who is rated above whom minds it less."""
    if all(pair.test.startswith(ORDER) for pair in pairs):
        return
    for one in systems:
        if one.n_items_off_end is not None and one.n_items_off_end < FEWEST_OFF_END:
            text = ngettext(
                "Most ratings of %(system)s lie at one end of the scale, and %(n)d item carries "
                "its mean: a test of means is a rough guide.",
                "Most ratings of %(system)s lie at one end of the scale, and %(n)d items carry "
                "its mean: a test of means is a rough guide.",
                one.n_items_off_end,
            )
            yield text % {"system": one.system, "n": one.n_items_off_end}


def rated_systems_table(results: Results) -> Table:
    """The systems by their mean rating, with the ranks they may have."""
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
        caption=_("The systems as people rate them, for new items and new annotators"),
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
    """What a report says first: sentences by question, then the means."""
    sentences = [" ".join(verdict.sentences) for verdict in verdicts(results)]
    table = rated_systems_table(results)
    return Section(_(TITLE), [*sentences, *([table] if table.rows else [])])


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.{DECIMALS}f}"
