"""What a study's Overview shows of collection: progress per day, money, and quality and pay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import cached_property
from itertools import accumulate
from math import ceil, floor
from typing import TYPE_CHECKING, Any

from django.core.cache import cache
from django.db.models import Count, Q, TextField
from django.db.models.functions import Cast, Substr
from django.http import HttpRequest
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from accounts.roles import Permission
from annotation.flags import EVIDENCE
from annotation.pages.study import Facts, Figure, Panel, stage_facts
from annotation.result_kinds.agreement import first_annotators
from annotation.result_kinds.base import newest_results
from annotation.study_facts import AGREEMENT
from console.access import may
from console.chart_values import Axis
from console.templatetags.numbers import usd
from hits.costs import spend_by_batch
from hits.models import Assignment
from hits.progress import SECONDS_AN_HOUR, BatchStanding, batch_standings, progress_in
from hits.wages import Wage, durations_of_batches, wage_of

if TYPE_CHECKING:
    from annotation.models.studies import CountedStudy

# Days whose pace gives the expected end, and dots of annotators on top of each other.
PACE_DAYS, MOST_DOTS, DOT_PX = 7, 8, 10
# Where the lines of a picture begin, and how wide and high they are, in % of it.
LEFT, WIDTH, TOP, HEIGHT = 14, 84, 6, 80


@dataclass(frozen=True)
class CollectedWork:
    """The batches of a study with their money."""

    study: CountedStudy

    @cached_property
    def standings(self) -> list[BatchStanding]:
        return batch_standings([self.study])

    @cached_property
    def spent_usd(self) -> Decimal:
        spends = spend_by_batch([one.batch for one in self.standings])
        return sum((one.total_usd for one in spends.values()), Decimal(0))

    @property
    def in_review_usd(self) -> Decimal:
        return sum((one.undecided_usd for one in self.standings), Decimal(0))

    @property
    def open_ones(self) -> list[BatchStanding]:
        return [one for one in self.standings if one.batch.closed_at is None]

    @property
    def open_usd(self) -> Decimal:
        return sum((one.price_of(one.n_missing) for one in self.open_ones), Decimal(0))

    @cached_property
    def paid(self) -> BatchStanding | None:
        """The newest batch whose reward its annotators get from the requester."""
        paid = [one for one in self.standings if not one.batch.is_recruited]
        return max(paid, key=lambda one: one.batch.pk, default=None)

    @cached_property
    def wage(self) -> tuple[Wage, int, float] | None:
        """The hourly pay, on how many submissions it rests, and their median seconds."""
        if self.paid is None or not self.paid.batch.n_collected:
            return None
        batch = self.paid.batch
        duration = durations_of_batches([(batch, self.study)]).get(batch.pk)
        if duration is None:
            return None
        return wage_of(batch.reward_usd, duration), duration.n, duration.typical_seconds

    @property
    def floor_usd(self) -> Decimal | None:
        return self.study.team.wage_floor_usd if self.study.team else None


def collected_work(study: CountedStudy) -> CollectedWork:
    """Asked for by several figures and panels of a page."""
    work: CollectedWork | None = getattr(study, "_collected_work", None)
    if work is None:
        work = CollectedWork(study)
        study._collected_work = work  # type: ignore[attr-defined]
    return work


def collected_figures(study: CountedStudy, facts: Facts) -> Iterator[Figure]:
    progress = progress_in(facts)
    if progress.n_offered:
        total = ngettext("of %(n)s assignment", "of %(n)s assignments", progress.n_offered)
        yield Figure(
            _("Collected"),
            f"{progress.n_collected:,}",
            total % {"n": f"{progress.n_offered:,}"},
            "answers",
            share=f"{progress.n_collected / progress.n_offered:.3f}",
        )
    else:
        n = study.n_submissions
        text = ngettext("in %(n)s submission", "in %(n)s submissions", n) % {"n": f"{n:,}"}
        yield Figure(_("Judgments"), f"{study.n_judgments:,}", text, "items")


def money_figures(study: CountedStudy, facts: Facts) -> Iterator[Figure]:
    if not facts["n_published"]:
        return
    work = collected_work(study)
    if work.wage is not None:
        wage, n, _seconds = work.wage
        text = ngettext("%(n)s submission", "%(n)s submissions", n) % {"n": f"{n:,}"}
        if work.floor_usd:
            text += "; " + _("minimum %(usd)s") % {"usd": usd(work.floor_usd)}
        yield Figure(
            _("Hourly pay, median"),
            usd(wage.typical_usd),
            text,
            "answers",
            permission=Permission.VIEW_MONEY,
        )
    rests_on = _("of %(usd)s committed") % {
        "usd": usd(work.spent_usd + work.in_review_usd + work.open_usd)
    }
    if cap := facts["budget_usd"]:
        rests_on += "; " + _("budget %(usd)s") % {"usd": usd(cap)}
    yield Figure(
        _("Spent"),
        usd(work.spent_usd),
        rests_on,
        "launch",
        permission=Permission.VIEW_MONEY,
    )


@dataclass(frozen=True)
class DailyProgress:
    """Submissions by day, as paths in a picture of 100 by 100."""

    # By day: how many were submitted, and how many of these are approved.
    days: list[tuple[date, int, int]]
    n_planned: int

    @property
    def n_submitted(self) -> int:
        return sum(n for _day, n, _approved in self.days)

    @property
    def n_approved(self) -> int:
        return sum(n for _day, _n, n in self.days)

    @property
    def top(self) -> int:
        return max(self.n_planned, self.n_submitted, 1)

    @cached_property
    def expected_end(self) -> date | None:
        """By the pace of the last week with submissions; None if nothing is left."""
        n_left = self.n_planned - self.n_submitted
        recent = [row for row in self.days if row[0] > self.last - timedelta(days=PACE_DAYS)]
        n_days = (self.last - recent[0][0]).days + 1
        pace = sum(n for _day, n, _approved in recent) / n_days
        return self.last + timedelta(days=ceil(n_left / pace)) if n_left > 0 and pace else None

    @property
    def end(self) -> date:
        return self.expected_end or self.last

    def _x(self, day: date) -> float:
        return 100 * (day - self.start).days / (self.end - self.start).days

    def _points(self, counts: Iterable[int]) -> str:
        totals = zip(self.days, accumulate(counts), strict=True)
        points = (f"{self._x(day):.2f},{100 - 100 * n / self.top:.2f}" for (day, *_), n in totals)
        return " ".join(["0,100", *points])

    @property
    def submitted_points(self) -> str:
        return self._points(n for _day, n, _approved in self.days)

    @property
    def approved_points(self) -> str:
        return self._points(n for _day, _n, n in self.days)

    @property
    def forecast_points(self) -> str:
        end = f"100,{100 - 100 * self.n_planned / self.top:.2f}"
        return f"{self.submitted_points.rpartition(' ')[2]} {end}"

    @property
    def last(self) -> date:
        return self.days[-1][0]

    @property
    def start(self) -> date:
        return self.days[0][0] - timedelta(days=1)

    @property
    def last_x(self) -> str:
        """Of the last day, empty if its label has no room between the ends."""
        x = self._x(self.last)
        return f"{LEFT + WIDTH * x / 100:.2f}%" if 20 < x < 80 else ""

    @property
    def ticks(self) -> list[tuple[int, str]]:
        """Counts at the lines of the axis, with their place between the top and the bottom."""
        values = sorted({0, self.top // 2, self.top})
        return [(one, f"{TOP + HEIGHT * (1 - one / self.top):.2f}%") for one in values]


def _daily(study: CountedStudy, facts: Facts) -> list[tuple[date, int, int]]:
    """Counted once for each state of the assignments: of a hundred thousand it takes a while."""
    progress = progress_in(facts)
    state = (study.judgments_version, progress.n_collected, progress.n_undecided)
    key = f"daily:{study.pk}:{state}".replace(" ", "")
    days: list[tuple[date, int, int]] | None = cache.get(key)
    if days is None:
        # Not TruncDate, which calls a function of Python for each row of SQLite.
        day = Substr(Cast("submitted_at", TextField()), 1, 10)
        rows = Assignment.objects.filter(hit__batch__study=study).order_by().values_list(day)
        approved = Count("pk", filter=Q(status=Assignment.Status.APPROVED))
        counts = rows.annotate(n=Count("pk"), n_approved=approved)
        days = sorted((date.fromisoformat(text), n, done) for text, n, done in counts)
        cache.set(key, days)
    return days


def _progress_panel(request: HttpRequest, study: CountedStudy) -> dict[str, Any] | None:
    facts = stage_facts(study)
    if study.n_judgments and not facts["n_hits"]:
        return None
    if not facts["n_collected"]:
        return {}
    return {"daily": DailyProgress(_daily(study, facts), facts["n_offered"])}


@dataclass(frozen=True)
class Amount:
    name: str
    label: str
    usd: Decimal
    n: int | None = None
    x: str = "0"
    width: str = "0"


def _money_panel(request: HttpRequest, study: CountedStudy) -> dict[str, Any] | None:
    facts = stage_facts(study)
    if not facts["n_published"]:
        return None if study.n_judgments else {}
    work = collected_work(study)
    cap, n_open = facts["budget_usd"], sum(one.n_missing for one in work.open_ones)
    amounts = [
        Amount("approved", _("Approved"), work.spent_usd),
        Amount("in-review", _("In review"), work.in_review_usd, facts["n_undecided"]),
        Amount("open", _("Open"), work.open_usd, n_open),
    ]
    total = sum((one.usd for one in amounts), Decimal(0))
    whole = max(cap or total, total, Decimal("0.01"))
    drawn, left = [], Decimal(0)
    for one in amounts:
        x, width = (f"{100 * part / whole:.2f}%" for part in (left, one.usd))
        drawn.append(replace(one, x=x, width=width))
        left += one.usd
    return {"amounts": drawn, "total": total, "cap": cap, "n_rejected": facts["n_rejected"]}


@dataclass(frozen=True)
class PayStrip:
    """Annotators' hourly pay on an axis, each a dot of x and y."""

    axis: Axis
    dots: list[tuple[str, int, bool]]
    floor_x: str
    n_low: int


def _pay_strip(hourly_usd: list[float], floor_usd: Decimal | None) -> PayStrip | None:
    if not hourly_usd:
        return None
    least = float(floor_usd) if floor_usd else 0.0
    ends = [*hourly_usd, least] if least else hourly_usd
    # Whole dollars at each quarter.
    low = floor(min(ends))
    axis = Axis(float(low), float(low + 4 * ceil((max(ends) - low + 0.01) / 4)))
    levels: dict[int, int] = {}
    dots = []
    for pay in sorted(hourly_usd):
        place = round(float(axis.x(pay)[:-1]) / 3)
        level = levels.setdefault(place, 0)
        levels[place] += 1
        dots.append((f"{3 * place}%", DOT_PX * min(level, MOST_DOTS), pay < least))
    return PayStrip(axis, dots, axis.x(least) if least else "", sum(low for _x, _y, low in dots))


def _quality_panel(request: HttpRequest, study: CountedStudy) -> dict[str, Any]:
    results = newest_results(study)
    evidence, agreement = results.get(EVIDENCE), results.get(AGREEMENT)
    if evidence is None and agreement is None:
        return {}
    facts = evidence.facts if evidence else {}
    positions = first_annotators(agreement).get("positions", ()) if agreement else ()
    context: dict[str, Any] = {
        "n_checks": facts.get("n_checks"),
        "n_passed": facts.get("n_checks", 0) - facts.get("n_failed_checks", 0),
        "n_flagged": sum(row["n_flagged"] for row in agreement.record["questions"][:1])
        if agreement
        else None,
        "n_submissions": study.n_submissions,
        "position": next((row for row in positions if not row["annotator"]), None),
    }
    seconds = facts.get("seconds_by_annotator", ())
    context["n_annotators"] = len(seconds)
    if may(request, Permission.VIEW_MONEY) and stage_facts(study)["n_published"]:
        work = collected_work(study)
        rewards = {one.batch.reward_usd for one in work.standings if not one.batch.is_recruited}
        # Of several rewards no annotator has a single hourly pay.
        reward = float(rewards.pop()) if len(rewards) == 1 else 0.0
        hourly = [reward * SECONDS_AN_HOUR / one for one in seconds if reward and one >= 1]
        context |= {"strip": _pay_strip(hourly, work.floor_usd), "floor_usd": work.floor_usd}
        context["seconds"] = work.wage[2] if work.wage else None
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
