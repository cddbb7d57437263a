from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from django.db.models import Count, Max, Min, Q
from django.utils.translation import gettext as _, ngettext

from annotation.models import Protocol, Study
from annotation.protocols.practice import n_attempts, practised_keys
from annotation.protocols.records import ProtocolDocument, ProtocolQuestion
from annotation.protocols.templates import COMPARISONS, size_problems
from annotation.protocols.validation import ITEM_FIELDS, NAMED_FIELD
from hits.costs import CENT, MANY_ASSIGNMENTS, Estimate, Room, over_budget_message, price_items
from hits.limits import AMAZON
from hits.models import MOST_WAVES, TOO_MANY_WAVES, Batch
from hits.plans import version_warning
from hits.qualification_tests import size_errors
from hits.questions import LATIN_SQUARE
from hits.readiness import Funds, PageCheck
from hits.requirements import (
    MOST_REQUIREMENTS,
    excludes_workers,
    requirements_of,
    requires_languages,
)
from hits.wages import Duration, practice_duration, reward_for, wage_of

MOST_LISTED = 10


class Level(StrEnum):
    FAULT = "fault"
    PENDING = "pending"
    WARNING = "warning"
    PASS = "pass"


@dataclass(frozen=True)
class Finding:
    level: Level
    message: str
    field: str = ""
    item_id: int | None = None
    reward_usd: Decimal | None = None
    protocol_field: str = ""
    code: str = ""


def fault(message: str, field: str = "", item_id: int | None = None, code: str = "") -> Finding:
    return Finding(Level.FAULT, message, field, item_id, code=code)


def pending_finding(message: str) -> Finding:
    return Finding(Level.PENDING, message)


def pass_finding(message: str, code: str = "") -> Finding:
    return Finding(Level.PASS, message, code=code)


def page_findings(check: PageCheck | None) -> Iterator[Finding]:
    if check is None:
        yield pending_finding(_("The items' pages are being looked at."))
        return
    for each in check.faults[:MOST_LISTED]:
        yield fault(each.message, item_id=each.item_id)
    if (n_more := check.n_faults - MOST_LISTED) > 0:
        yield fault(
            ngettext("One more page has a fault.", "%(n)s more pages have faults.", n_more)
            % {"n": f"{n_more:,}"}
        )
    if not check.faults:
        yield pass_finding(
            ngettext("The item makes a page.", "All %(n)s items make a page.", check.n_pages)
            % {"n": f"{check.n_pages:,}"}
        )
    yield from _empty_page_findings(check)
    for item_id, key in check.repeats[:MOST_LISTED]:
        yield Finding(
            Level.WARNING,
            _("Item “%(key)s” has two responses of the same text. Workers will judge it twice.")
            % {"key": key},
            item_id=item_id,
            code="repeated_response",
        )
    if not check.repeats:
        yield pass_finding(_("No item has the same response twice."))


def _empty_page_findings(check: PageCheck) -> Iterator[Finding]:
    if check.n_responses and check.n_empty == check.n_responses:
        text = ngettext(
            "The one response has no text and no picture: there is nothing to judge.",
            "None of the %(n)s responses has a text or a picture: there is nothing to judge.",
            check.n_empty,
        )
        yield fault(
            text % {"n": f"{check.n_empty:,}"}, item_id=check.first_empty, code="nothing_to_judge"
        )
        return
    for item_id, key in check.blanks[:MOST_LISTED]:
        yield fault(
            _("Item “%(key)s” has no text and no picture: nothing is on its page.") % {"key": key},
            item_id=item_id,
            code="empty_page",
        )
    if (n_more := check.n_blanks - MOST_LISTED) > 0:
        yield fault(
            ngettext("One more page is empty.", "%(n)s more pages are empty.", n_more)
            % {"n": f"{n_more:,}"}
        )
    if check.n_empty and not check.n_blanks:
        text = ngettext(
            "%(n)s response has no text and no picture. Workers read “(empty response)” there.",
            "%(n)s responses have no text and no picture. Workers read “(empty response)” there.",
            check.n_empty,
        )
        yield Finding(
            Level.WARNING,
            text % {"n": f"{check.n_empty:,}"},
            item_id=check.first_empty,
            code="empty_responses",
        )
    elif not check.n_empty and check.n_responses:
        yield pass_finding(_("Every response has a text or a picture."), code="filled_responses")


def connection_findings(
    draft: Batch, cost: Estimate | None, funds: Funds | None
) -> Iterator[Finding]:
    if draft.connection.closed_at is not None:
        yield fault(_("This connection is closed. Choose another."), "connection")
        return
    yield pass_finding(_("The connection is open."))
    if funds is None:
        yield pending_finding(_("The account's balance is being asked for."))
    elif funds.available_usd is None:
        yield fault(funds.problem, "connection")
    elif cost is not None and funds.available_usd < cost.total_usd:
        yield fault(
            _("The account has $%(available).2f; this needs $%(total).2f.")
            % {"available": funds.available_usd, "total": cost.total_usd},
            "connection",
            code="low_balance",
        )
    else:
        yield pass_finding(_("The account has $%(usd).2f.") % {"usd": funds.available_usd})


def language_findings(draft: Batch, funds: Funds | None) -> Iterator[Finding]:
    if funds is None or not funds.is_known or not requires_languages(draft):
        return
    if funds.has_languages:
        yield pass_finding(_("The marketplace asks its workers which languages they know."))
    else:
        yield fault(
            _(
                "This marketplace does not know its workers' languages. Leave them out, and test "
                "them by a qualification of your own, or launch on a marketplace that does."
            ),
            "languages",
        )


def order_findings(draft: Batch, funds: Funds | None) -> Iterator[Finding]:
    if draft.document.order.policy != LATIN_SQUARE or funds is None or not funds.is_known:
        return
    if not funds.has_languages:
        yield Finding(
            Level.WARNING,
            _(
                "This marketplace does not balance the order of candidates: each worker's order is "
                "drawn at random. The batch's page counts the items with uneven orders."
            ),
            protocol_field="order-policy",
            code="unbalanced_marketplace",
        )


def qualification_test_findings(draft: Batch) -> Iterator[Finding]:
    for message in size_errors(draft.document):
        yield fault(message, code="test_too_long")
    if n := len(draft.document.qualifications.tests):
        yield pass_finding(
            ngettext(
                "Workers pass a test first.", "Workers pass %(n)s tests first, practice too.", n
            )
            % {"n": n},
            code="tests_first",
        )


def practice_findings(
    draft: Batch, duration: Duration, floor_usd: Decimal | None
) -> Iterator[Finding]:
    practice = draft.document.qualifications.practice
    if practice is None:
        return
    n = n_attempts(practice)
    text = ngettext(
        "Workers practise first, at one paid HIT with the study's own page.",
        "Workers practise first, at one of %(n)s paid HITs with the study's own page.",
        n,
    )
    yield pass_finding(text % {"n": n}, code="practice_first")
    reward = Decimal(str(practice.reward_usd)).quantize(CENT)
    if not reward:
        yield Finding(
            Level.WARNING,
            _("Practice is not paid."),
            protocol_field="practice-reward_usd",
            code="unpaid_practice",
        )
    duration = practice_duration(practice, duration)
    wage = wage_of(reward, duration)
    if floor_usd is None or wage.typical_usd >= floor_usd:
        return
    text = _(
        "Practice pays $%(wage).2f an hour, under the team minimum of $%(floor).2f. $%(enough).2f "
        "for each of its HITs would reach it."
    )
    values = {"wage": wage.typical_usd, "floor": floor_usd}
    values["enough"] = reward_for(floor_usd, duration)
    yield Finding(
        Level.WARNING,
        text % values,
        protocol_field="practice-reward_usd",
        code="practice_under_floor",
    )


def recruiter_findings(draft: Batch, has_recruiter: bool, *, n_ignored: int) -> Iterator[Finding]:
    if draft.is_invited and draft.connection.marketplace in AMAZON:
        yield fault(_("Mechanical Turk has no invitation links."), "connection")
    elif draft.is_invited:
        yield pass_finding(_("Invited people are not paid here."))
    elif has_recruiter:
        yield pass_finding(_("A recruiter finds and pays the participants: nothing is paid here."))
    else:
        yield fault(
            _("No recruiter is connected over this marketplace: connect one first."), "connection"
        )
    qualifications = draft.document.qualifications
    if qualifications.tests or qualifications.practice is not None:
        yield Finding(
            Level.FAULT,
            _("Participants of a recruiter and invited people take no tests and do not practise."),
            protocol_field="title",
        )
    if n_ignored:
        yield Finding(
            Level.WARNING,
            _(
                "Countries, languages, approval rates, Masters and waves are not asked of "
                "participants: choose whom you want at the recruiter, or whom you invite."
            ),
            "is_invited" if draft.is_invited else "is_recruited",
        )


def version_findings(
    draft: Batch, batches: Iterable[Batch], versions: Iterable[Protocol]
) -> Iterator[Finding]:
    if text := version_warning(draft, batches, versions):
        yield Finding(Level.WARNING, text, protocol_field="title", code="other_version")


def budget_findings(rooms: Iterable[Room], cost: Estimate | None) -> Iterator[Finding]:
    for room in rooms:
        if cost is not None and cost.total_usd > room.left_usd:
            yield fault(over_budget_message(room, cost.total_usd), "budget_usd")
        else:
            yield pass_finding(_("The %(scope)s's budget reaches.") % {"scope": room.scope})


def pay_findings(draft: Batch, duration: Duration, floor_usd: Decimal | None) -> Iterator[Finding]:
    if draft.reward_usd == 0:
        yield Finding(Level.WARNING, _("This work is not paid."), "reward_usd")
    if floor_usd is None:
        return
    wage = wage_of(draft.reward_usd, duration)
    if wage.typical_usd >= floor_usd:
        yield pass_finding(
            _("The pay meets the team minimum of $%(floor).2f an hour.") % {"floor": floor_usd}
        )
        return
    message = _("$%(wage).2f an hour is under the team minimum of $%(floor).2f.") % {
        "wage": wage.typical_usd,
        "floor": floor_usd,
    }
    yield Finding(Level.WARNING, message, "reward_usd", reward_usd=reward_for(floor_usd, duration))


def term_findings(draft: Batch, n_items: int) -> Iterator[Finding]:
    n_requirements = len(requirements_of(draft)) + (
        excludes_workers(draft) and not draft.exclusion_type_id
    )
    qualifications = draft.document.qualifications
    n_requirements += len(qualifications.tests) - len(draft.test_type_ids)
    n_requirements += qualifications.practice is not None and not draft.practice_type_id
    if n_requirements > MOST_REQUIREMENTS:
        yield fault(
            _("%(n)s requirements are more than the 10 that a marketplace takes.")
            % {"n": n_requirements},
            "countries",
        )
    else:
        yield pass_finding(_("A marketplace takes these requirements of workers."))
    if draft.n_waves > MOST_WAVES:
        yield fault(TOO_MANY_WAVES % {"most": MOST_WAVES}, "wave_size")
    if draft.lifetime_seconds < draft.assignment_duration_seconds:
        yield Finding(
            Level.WARNING,
            _("The HITs are on offer for less time than one of them may take."),
            "days",
        )
    if (saving_usd := wave_saving_usd(draft, n_items)) >= CENT:
        yield Finding(
            Level.WARNING,
            _("Ten assignments or more cost a higher fee. Waves of nine save $%(usd).2f.")
            % {"usd": saving_usd},
            "wave_size",
        )


def wave_saving_usd(draft: Batch, n_items: int, wave_size: int = MANY_ASSIGNMENTS - 1) -> Decimal:
    undivided_usd = price_items(draft, n_items=n_items).total_usd
    in_waves = Batch(
        study=draft.study,
        connection=draft.connection,
        reward_usd=draft.reward_usd,
        max_assignments=draft.max_assignments,
        needs_masters=draft.needs_masters,
        wave_size=wave_size,
    )
    return undivided_usd - price_items(in_waves, n_items=n_items).total_usd


def item_findings(study: Study, document: ProtocolDocument) -> Iterator[Finding]:
    yield from _instruction_findings(document)
    yield from _size_findings(study, document)
    named = [
        (f"q{index}-wording", question, name)
        for index, question in enumerate(document.questions)
        for name in dict.fromkeys(NAMED_FIELD.findall(question.wording))
        if name in ITEM_FIELDS
    ]
    if not named:
        return
    counts = study.items.exclude(key__in=practised_keys(document)).aggregate(
        n=Count("pk"), **{name: Count("pk", filter=Q(**{name: ""})) for name in ITEM_FIELDS}
    )
    for field, question, name in named:
        if counts[name]:
            yield _wording_finding(field, question, name, counts[name], counts["n"])


def _instruction_findings(document: ProtocolDocument) -> Iterator[Finding]:
    for name in dict.fromkeys(NAMED_FIELD.findall(document.instructions)):
        if name in ITEM_FIELDS:
            yield Finding(
                Level.WARNING,
                _(
                    "The instructions name {%(name)s}, which workers will read as it is written: "
                    "only the wording of a question has an item's own text there."
                )
                % {"name": name},
                protocol_field="instructions",
                code="name_in_instructions",
            )


def _wording_finding(
    field: str, question: ProtocolQuestion, name: str, n_without: int, n_items: int
) -> Finding:
    values = {"question": question.heading, "name": name, "n": f"{n_without:,}"}
    if n_without == n_items:
        text = _(
            "The wording of “%(question)s” names {%(name)s}, and no item has one: workers would be "
            "asked about nothing. Change the wording, or add items that have one."
        )
        return Finding(Level.FAULT, text % values, protocol_field=field, code="name_of_nothing")
    text = ngettext(
        "The wording of “%(question)s” names {%(name)s}, and %(n)s item has none: nothing stands "
        "there on its page.",
        "The wording of “%(question)s” names {%(name)s}, and %(n)s items have none: nothing stands "
        "there on their pages.",
        n_without,
    )
    return Finding(Level.WARNING, text % values, protocol_field=field, code="name_lacking")


def _size_findings(study: Study, document: ProtocolDocument) -> Iterator[Finding]:
    compared = (n for n, each in enumerate(document.questions) if each.kind in COMPARISONS)
    if (first := next(compared, None)) is None:
        return
    items = study.items.exclude(key__in=practised_keys(document)).order_by()
    sizes = items.annotate(n=Count("candidates")).aggregate(least=Min("n"), most=Max("n"))
    if sizes["most"] is None:
        return
    for problem in size_problems(document, sizes["least"], sizes["most"]):
        # Nobody can answer it.
        level = Level.FAULT if problem.code == "best_worst_of_one" else Level.WARNING
        yield Finding(level, f"{problem}.", protocol_field=f"q{first}-kind", code=problem.code)
