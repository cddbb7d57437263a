"""What a study's Overview shows of collection: progress per day, money, and quality and pay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate, groupby
from math import ceil, floor
from operator import itemgetter
from typing import TYPE_CHECKING, Any, cast

from django.core.cache import cache
from django.db.models import Count, Q, TextField
from django.db.models.functions import Cast, Substr
from django.http import HttpRequest
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from accounts.roles import Permission
from annotation.flags import EVIDENCE
from annotation.pages.stages import Facts, Figure, Panel, stage_facts
from annotation.result_kinds.agreement import first_annotators
from annotation.result_kinds.base import newest_results
from annotation.study_facts import AGREEMENT
from console.access import may
from console.chart_values import Axis
from console.templatetags.numbers import usd
from hits.costs import spend_by_batch
from hits.models import Assignment
from hits.progress import SECONDS_AN_HOUR, batch_standings
from hits.wages import durations_of_batches, wage_of

if TYPE_CHECKING:
    from annotation.models.studies import CountedStudy

# Days whose pace gives the expected end, and dots of annotators on top of each other.
PACE_DAYS, MOST_DOTS, DOT_PX = 7, 8, 10


def collected_work(study: CountedStudy) -> dict[str, Any]:
    """The batches of a study with their money and pace; asked once of a loaded study."""
    work: dict[str, Any] | None = getattr(study, "_collected_work", None)
    if work is None:
        standings = batch_standings([study])
        spends = spend_by_batch([one.batch for one in standings])
        open_ones = [one for one in standings if one.batch.closed_at is None]
        # Participants are paid by their recruiter.
        paid = [one.batch for one in standings if not one.batch.is_recruited]
        last = max(paid, key=lambda one: one.pk, default=None)
        timed = [(last, study)] if last is not None and last.n_collected else []
        duration = next(iter(durations_of_batches(timed).values()), None) if timed else None
        work = {
            "standings": standings,
            "spent_usd": sum((one.total_usd for one in spends.values()), Decimal(0)),
            "in_review_usd": sum((one.undecided_usd for one in standings), Decimal(0)),
            "open_usd": sum((one.price_of(one.n_missing) for one in open_ones), Decimal(0)),
            "n_open": sum(one.n_missing for one in open_ones),
            "rewards_usd": {one.reward_usd for one in paid},
            "duration": duration,
            "hourly_usd": wage_of(last.reward_usd, duration).typical_usd
            if last is not None and duration
            else None,
            "floor_usd": study.team.wage_floor_usd if study.team else None,
        }
        study._collected_work = work  # type: ignore[attr-defined]
    return work


def collected_figures(study: CountedStudy, facts: Facts) -> Iterator[Figure]:
    n, n_offered = facts["n_collected"], facts["n_offered"]
    if n_offered:
        total = ngettext("of %(n)s assignment", "of %(n)s assignments", n_offered)
        rests_on = total % {"n": f"{n_offered:,}"}
        yield Figure(_("Collected"), f"{n:,}", rests_on, "answers", share=f"{n / n_offered:.3f}")
    else:
        n = study.n_submissions
        text = ngettext("in %(n)s submission", "in %(n)s submissions", n) % {"n": f"{n:,}"}
        yield Figure(_("Judgments"), f"{study.n_judgments:,}", text, "items")


def money_figures(study: CountedStudy, facts: Facts) -> Iterator[Figure]:
    if not facts["n_published"]:
        return
    work, sees_money = collected_work(study), {"permission": Permission.VIEW_MONEY}
    if work["hourly_usd"] is not None:
        n = work["duration"].n
        text = ngettext("%(n)s submission", "%(n)s submissions", n) % {"n": f"{n:,}"}
        if len(work["standings"]) > 1:
            text = _("%(n)s of the newest batch") % {"n": text}
        if work["floor_usd"]:
            text += "; " + _("minimum %(usd)s") % {"usd": usd(work["floor_usd"])}
        yield Figure(
            _("Hourly pay, median"), usd(work["hourly_usd"]), text, "answers", **sees_money
        )
    committed_usd = work["spent_usd"] + work["in_review_usd"] + work["open_usd"]
    rests_on = _("of %(usd)s committed") % {"usd": usd(committed_usd)}
    if cap := facts["budget_usd"]:
        rests_on += "; " + _("budget %(usd)s") % {"usd": usd(cap)}
    yield Figure(_("Spent"), usd(work["spent_usd"]), rests_on, "launch", **sees_money)


Days = list[tuple[date, int, int]]


def daily_progress(days: Days, n_planned: int) -> dict[str, Any]:
    """A picture of submissions by day (how many, and how many of these are approved), with lines
    in 100 by 100. The expected end continues the pace of the last week."""
    submitted = list(accumulate(n for _day, n, _approved in days))
    approved = list(accumulate(n for _day, _n, n in days))
    # A day begins at its place on the axis, and its counts are complete at its end.
    last, first = days[-1][0], days[0][0]
    start = first - timedelta(days=1)
    recent = [row for row in days if row[0] > last - timedelta(days=PACE_DAYS)]
    pace = sum(n for _day, n, _approved in recent) / ((last - recent[0][0]).days + 1)
    n_left, top = n_planned - submitted[-1], max(n_planned, submitted[-1])
    expected_end = last + timedelta(days=ceil(n_left / pace)) if n_left > 0 else None
    end = expected_end or last
    xs = [100 * (day - start).days / (end - start).days for day, *_counts in days]
    # The label of the last day needs room between the labels of the ends.
    is_labelled = first < last and 20 < xs[-1] < 80

    def draw(places: Iterable[float], totals: Iterable[int]) -> str:
        pairs = zip(places, totals, strict=True)
        return " ".join(f"{x:.2f},{100 - 100 * n / top:.2f}" for x, n in pairs)

    return {
        "n_submitted": submitted[-1],
        "n_approved": approved[-1],
        "n_planned": n_planned,
        "submitted_points": draw([0, *xs], [0, *submitted]),
        "approved_points": draw([0, *xs], [0, *approved]),
        "forecast_points": draw([xs[-1], 100], [submitted[-1], n_planned]),
        "ticks": [(n, f"{TOP + HEIGHT * (1 - n / top):.2f}%") for n in sorted({0, top // 2, top})],
        "start": first,
        "last": last,
        "last_x": f"{LEFT + WIDTH * xs[-1] / 100:.2f}%" if is_labelled else "",
        "end": end,
        "expected_end": expected_end,
    }


# Where the lines of a picture begin, and how wide and high they are, in % of it.
LEFT, WIDTH, TOP, HEIGHT = 14, 84, 6, 80


def _count_days(study: CountedStudy) -> Days:
    # Not TruncDate, which calls a function of Python for each row of SQLite.
    day = Substr(Cast("submitted_at", TextField()), 1, 10)
    rows = Assignment.objects.filter(hit__batch__study=study).order_by().values_list(day)
    approved = Count("pk", filter=Q(status=Assignment.Status.APPROVED))
    counts = rows.annotate(n=Count("pk"), n_approved=approved)
    return sorted((date.fromisoformat(text), n, n_approved) for text, n, n_approved in counts)


def _progress_panel(request: HttpRequest, study: CountedStudy) -> dict[str, Any] | None:
    facts = stage_facts(study)
    if study.n_judgments and not facts["n_hits"]:
        return None
    if not facts["n_collected"]:
        return {}
    # Counted once for each state of the assignments: of a hundred thousand it takes a while.
    state = f"{study.judgments_version}:{facts['n_collected']}:{facts['n_undecided']}"
    days = cache.get_or_set(f"daily:{study.pk}:{state}", lambda: _count_days(study))
    return {"daily": daily_progress(cast("Days", days), facts["n_offered"])}


def _money_panel(request: HttpRequest, study: CountedStudy) -> dict[str, Any] | None:
    facts = stage_facts(study)
    if not facts["n_published"]:
        return None if study.n_judgments else {}
    work, cap = collected_work(study), facts["budget_usd"]
    parts = (
        ("approved", _("Approved"), work["spent_usd"], None),
        ("in-review", _("In review"), work["in_review_usd"], facts["n_undecided"]),
        ("open", _("Open"), work["open_usd"], work["n_open"]),
    )
    *begins, total = accumulate((part[2] for part in parts), initial=Decimal(0))
    whole = max(cap or total, total, Decimal("0.01"))
    amounts = [
        (*part, f"{100 * begin / whole:.2f}%", f"{100 * part[2] / whole:.2f}%")
        for part, begin in zip(parts, begins, strict=True)
    ]
    return {"amounts": amounts, "total": total, "cap": cap, "n_rejected": facts["n_rejected"]}


def pay_strip(hourly_usd: list[float], floor_usd: Decimal | None) -> dict[str, Any]:
    """Annotators' hourly pay on an axis, each a dot: its x and y, and whether it is too low."""
    least = float(floor_usd or 0)
    ends = [*hourly_usd, least] if least else hourly_usd
    # Whole dollars at each quarter.
    low = floor(min(ends))
    axis = Axis(float(low), float(low + 4 * ceil((max(ends) - low + 0.01) / 4)))
    places = [(round(float(axis.x(one)[:-1]) / 3), one < least) for one in sorted(hourly_usd)]
    dots = [
        (f"{3 * place}%", DOT_PX * min(level, MOST_DOTS), is_low)
        for place, dots_there in groupby(places, key=itemgetter(0))
        for level, (_place, is_low) in enumerate(dots_there)
    ]
    n_low = sum(is_low for _place, is_low in places)
    return {"axis": axis, "dots": dots, "floor_x": axis.x(least) if least else "", "n_low": n_low}


def _quality_panel(request: HttpRequest, study: CountedStudy) -> dict[str, Any]:
    evidence, agreement = (newest_results(study).get(name) for name in (EVIDENCE, AGREEMENT))
    if agreement is None:
        return {}
    facts = evidence.facts if evidence else {}
    seconds = facts.get("seconds_by_annotator", ())
    positions = first_annotators(agreement).get("positions", ())
    context: dict[str, Any] = {
        "n_checks": facts.get("n_checks", 0),
        "n_passed": facts.get("n_checks", 0) - facts.get("n_failed_checks", 0),
        "n_flagged": facts.get("n_flagged"),
        "n_submissions": facts.get("n_submissions"),
        "n_annotators": len(seconds),
        "position": next((row for row in positions if not row["annotator"]), None),
    }
    if may(request, Permission.VIEW_MONEY) and stage_facts(study)["n_published"]:
        context |= collected_work(study)
        # Of several rewards no annotator has a single hourly pay.
        rewards = context["rewards_usd"] if len(context["rewards_usd"]) == 1 else ()
        hourly = [float(each) * SECONDS_AN_HOUR / one for each in rewards for one in seconds if one]
        context["strip"] = pay_strip(hourly, context["floor_usd"]) if hourly else None
    return context


PANELS = (
    Panel(
        name="progress",
        title=gettext_lazy("Progress"),
        page="answers",
        place=20,
        template="hits/overview/_progress.html",
        describe=_progress_panel,
        promise=gettext_lazy(
            "Submitted and approved assignments per day, with the expected end. Starts when you "
            "publish the pilot."
        ),
        outline="lines",
    ),
    Panel(
        name="money",
        title=gettext_lazy("Money"),
        page="launch",
        place=60,
        template="hits/overview/_money.html",
        describe=_money_panel,
        promise=gettext_lazy("Approved, in review and open, in US dollars, from the pilot on."),
        outline="bars",
        permission=Permission.VIEW_MONEY,
    ),
    Panel(
        name="quality",
        title=gettext_lazy("Quality and pay"),
        page="annotators",
        place=70,
        template="hits/overview/_quality.html",
        describe=_quality_panel,
        promise=gettext_lazy(
            "Attention checks, flags, the effect of the order, and hourly pay. The pilot gives the "
            "first figures."
        ),
        outline="lines",
    ),
)
