from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.conf import settings
from django.db.models import Exists, Max, OuterRef
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from accounts.models import User
from accounts.roles import Permission
from annotation.access import loaded_permissions
from annotation.models import Adjudication, LabelSet, Study, counted
from annotation.pages.stages import find_leads
from annotation.study_facts import AGREEMENT, newest_fact, subject_of
from console.registrations import DONE, LATER, NEEDS_YOU, SIGNS
from hits.costs import Room, paid_by_recruiters, rooms_by_study, spend_by_batch
from hits.pages.todos import (
    TONES,
    Decision,
    appeal_decision,
    dispute_decision,
    inquiry_decision,
    recruiting_decisions,
)
from hits.progress import BatchStanding, batch_standings
from hits.wages import duration_words, durations_of_batches, reward_for, wage_of
from presentation.numbers import group_values
from work.models import Job

# An end that comes later than this is nobody's decision yet.
SOON = timedelta(days=2)
# Of a budget, below which money is running out.
LOW_SHARE = Decimal("0.1")
MOST_DECISIONS = 20
MOST_TEAM_BUDGETS = 3


class Home:
    def __init__(self, user: User, studies: Sequence[Study]) -> None:
        self.studies = {study.pk: study for study in studies}
        self.permissions = {study.pk: loaded_permissions(study, user) for study in studies}
        self.standings = batch_standings(studies)

    @cached_property
    def rooms(self) -> list[Room]:
        return rooms_by_study(
            [
                study
                for pk, study in self.current.items()
                if Permission.VIEW_MONEY in self.permissions[pk]
            ]
        )

    @property
    def team_rooms(self) -> list[Room]:
        return [room for room in self.rooms if room.scope == "team"][:MOST_TEAM_BUDGETS]

    @cached_property
    def current(self) -> dict[int, Study]:
        return {key: each for key, each in self.studies.items() if each.archived_at is None}

    def current_standings(self, permission: Permission) -> Iterator[tuple[Study, BatchStanding]]:
        for standing in self.standings:
            study = self.current.get(standing.batch.study_id)
            if study is not None and permission in self.permissions[study.pk]:
                yield study, standing

    def decisions(self) -> list[Decision]:
        # By urgency; of equals, what time decides by its date, then the oldest.
        now = timezone.now()
        return sorted(
            _waiting_decisions(self),
            key=lambda one: (TONES.index(one.tone), one.due is None, one.due or one.since or now),
        )[:MOST_DECISIONS]

    def rows(self, studies: Sequence[Study]) -> list[dict[str, Any]]:
        # The studies must come from `with_n_items()`.
        of_study = group_values((standing.batch.study_id, standing) for standing in self.standings)
        spends = spend_by_batch([one.batch for one in self.standings])
        has_money = {key for key, may in self.permissions.items() if Permission.VIEW_MONEY in may}
        recruited = {one.batch.study_id for one in self.standings if one.batch.is_recruited}
        paying = {study.pk for study in studies} & has_money & recruited
        paid_there = paid_by_recruiters(paying) if paying else {}
        leads = find_leads(
            study.pk
            for study in studies
            if study.judgments_version and Permission.VIEW_SYSTEMS in self.permissions[study.pk]
        )
        rows = []
        for study in studies:
            standings = of_study[study.pk]
            spent = [spends[one.batch.pk].total_usd for one in standings]
            n_offered = sum(one.n_offered for one in standings)
            n_collected = sum(one.batch.n_collected for one in standings)
            state, stage = _stage(study, standings, is_complete=n_collected >= n_offered)
            row = {
                **{"study": study, "state": state, "sign": SIGNS[state], "stage": stage},
                **{"n_collected": n_collected, "n_offered": n_offered},
                "spent_usd": sum(spent, Decimal(0)) if spent and study.pk in has_money else None,
                # What recruiters paid participants, by currency.
                "paid_there": paid_there.get(study.pk, {}),
                "lead": leads.get(study.pk),
            }
            rows.append(row)
        return rows


def _stage(study: Study, standings: list[BatchStanding], *, is_complete: bool) -> tuple[str, str]:
    if study.archived_at is not None:
        return LATER, _("Archived")
    if not standings:
        if study.judgments_version:
            return DONE, _("Imported")
        return (LATER, _("Launch")) if getattr(study, "n_items", 0) else (LATER, _("Items"))
    if any(one.n_undecided or one.n_unreadable for one in standings):
        return NEEDS_YOU, _("Review")
    if is_complete:
        return DONE, _("Done")
    is_over = all(
        one.batch.closed_at or one.batch.offered_until <= timezone.now() for one in standings
    )
    return (NEEDS_YOU, _("Incomplete")) if is_over else ("active", _("Collecting"))


def _waiting_decisions(home: Home) -> Iterator[Decision]:
    # The batches of each study together: they are decided on the same page.
    for pk, standings in group_values(
        (study.pk, standing) for study, standing in home.current_standings(Permission.REVIEW)
    ).items():
        for find in (_reviews, _appeals, _inquiries, _unreadable):
            yield from find(home.current[pk], standings)
    for study, standing in home.current_standings(Permission.SPEND):
        yield from _ends(study, standing)
    for find_all in (_of_participants, _pay_under_floors, _low_budgets, _failed_jobs, _disputes):
        yield from find_all(home)


def _of_participants(home: Home) -> Iterator[Decision]:
    spent = home.current_standings(Permission.SPEND)
    batches = [one.batch for _study, one in spent if one.batch.is_recruited]
    for batch, one in recruiting_decisions({batch.study_id for batch in batches}, batches):
        yield replace(
            one, **_about(home.current[batch.study_id]), code="recruiting", since=timezone.now()
        )


def _about(study: Study) -> dict[str, Any]:
    return {"about": study.title, "about_url": _page("study", study)}


def _page(name: str, study: Study, *parts: object) -> str:
    return reverse(f"console:{name}", args=[study.slug, *parts])


def _at(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"


def _reviews(study: Study, standings: Sequence[BatchStanding]) -> Iterator[Decision]:
    dates = [one.first_approval_at for one in standings if one.first_approval_at]
    if not dates:
        return
    due, n = min(dates), sum(one.n_undecided for one in standings)
    n_flagged = sum(one.n_flagged for one in standings)
    fact = ngettext(
        "%(n)s submission waits; it is approved automatically on %(at)s UTC.",
        "%(n)s submissions wait; the first is approved automatically on %(at)s UTC.",
        n,
    )
    flagged = ngettext("%(n)s of them is flagged.", "%(n)s of them are flagged.", n_flagged)
    cost = ngettext(
        "Approving it costs $%(usd).2f with fees.",
        "Approving all costs $%(usd).2f with fees.",
        n,
    )
    usd = sum((one.undecided_usd for one in standings), Decimal(0))
    if not usd and any(one.batch.is_recruited for one in standings):
        is_unpaid = all(one.batch.is_invited for one in standings)
        cost = _("It costs nothing.") if is_unpaid else _("The recruiter pays its participants.")
    yield Decision(
        "error" if due - timezone.now() < SOON else "warning",
        fact % {"n": f"{n:,}", "at": _at(due)},
        _("Review %(n)s") % {"n": f"{n:,}"},
        _page("review", study),
        f"{flagged % {'n': n_flagged}} {cost % {'usd': usd}}" if n_flagged else cost % {"usd": usd},
        "review",
        **_about(study),
        due=due,
    )


def _appeals(study: Study, standings: Sequence[BatchStanding]) -> Iterator[Decision]:
    dates = [one.first_appeal_at for one in standings if one.first_appeal_at]
    n = sum(one.n_appeals for one in standings)
    cost = ngettext(
        "Paying after all costs $%(usd).2f with fees.",
        "Paying all after all costs $%(usd).2f with fees.",
        n,
    )
    usd = sum((one.price_of(one.n_appeals) for one in standings), Decimal(0))
    if dates:
        yield appeal_decision(
            study,
            n,
            **_about(study) | {"note": cost % {"usd": usd}, "code": "appeal"},
            since=min(dates),
        )


def _inquiries(study: Study, standings: Sequence[BatchStanding]) -> Iterator[Decision]:
    if n := sum(one.batch.n_inquiries for one in standings):
        yield inquiry_decision(study, n, **_about(study), code="inquiry", since=timezone.now())


def _unreadable(study: Study, standings: Sequence[BatchStanding]) -> Iterator[Decision]:
    of_batches = [one for one in standings if one.n_unreadable]
    if not of_batches:
        return
    n = sum(one.n_unreadable for one in of_batches)
    usd = sum((one.unreadable_usd for one in of_batches), Decimal(0))
    yield Decision(
        "warning",
        ngettext("%(n)s answer could not be read.", "%(n)s answers could not be read.", n)
        % {"n": f"{n:,}"},
        ngettext("See why", "See why for %(n)s", n) % {"n": f"{n:,}"},
        _page("answers", study),
        _("Unless rejected they cost $%(usd).2f with fees.") % {"usd": usd} if usd else "",
        "unreadable",
        **_about(study),
        since=of_batches[0].batch.created_at,
    )


def _ends(study: Study, standing: BatchStanding) -> Iterator[Decision]:
    batch, n_missing = standing.batch, standing.n_missing
    end, now = batch.offered_until, timezone.now()
    if n_missing <= 0 or batch.closed_at or end - now > SOON:
        return
    is_over = end <= now
    if is_over:
        fact = ngettext(
            "A batch has expired with %(n)s assignment missing.",
            "A batch has expired with %(n)s assignments missing.",
            n_missing,
        )
        cost = _("Offering them again costs $%(usd).2f with fees.")
        button = ngettext("Offer %(n)s again", "Offer %(n)s again", n_missing)
    else:
        fact = ngettext(
            "A batch expires on %(at)s UTC with %(n)s assignment still open.",
            "A batch expires on %(at)s UTC with %(n)s assignments still open.",
            n_missing,
        )
        cost, button = _("More time costs nothing."), _("Extend")
    about = _("Batch %(pk)s, round %(round)s.") % {"pk": batch.pk, "round": batch.round}
    change = "repost" if is_over else "extend"
    yield Decision(
        "warning",
        fact % {"n": f"{n_missing:,}", "at": _at(end)},
        button % {"n": f"{n_missing:,}"},
        _page("batch-change", study, batch.pk, change),
        f"{about} {cost % {'usd': standing.price_of(n_missing)} if is_over else cost}",
        change,
        **_about(study),
        due=None if is_over else end,
        since=end,
    )


def _pay_under_floors(home: Home) -> Iterator[Decision]:
    open_ones = [
        (study, standing)
        for study, standing in {
            study.pk: (study, standing)
            for study, standing in home.current_standings(Permission.SPEND)
            if study.team and study.team.wage_floor_usd and standing.batch.n_collected
        }.values()
        if not standing.batch.is_recruited and standing.batch.closed_at is None
    ]
    durations = durations_of_batches([(standing.batch, study) for study, standing in open_ones])
    for study, standing in open_ones:
        duration = durations.get(standing.batch.pk)
        floor = study.team.wage_floor_usd if study.team else None
        if duration is None or floor is None:
            continue
        wage = wage_of(standing.batch.reward_usd, duration).typical_usd
        if wage >= floor:
            continue
        fact = _("Batch %(pk)s pays $%(wage).2f an hour; your team’s minimum is $%(floor).2f.")
        yield Decision(
            "warning",
            fact % {"pk": standing.batch.pk, "wage": wage, "floor": floor},
            _("Set the pay"),
            _page("launch", study),
            _(
                "%(n)s of %(wanted)s collected, median %(time)s. $%(usd).2f a HIT would meet the "
                "minimum."
            )
            % {
                "n": f"{standing.batch.n_collected:,}",
                "wanted": f"{standing.n_offered:,}",
                "time": duration_words(duration.typical_seconds),
                "usd": reward_for(floor, duration),
            },
            "pay",
            **_about(study),
            since=standing.batch.created_at,
        )


def _low_budgets(home: Home) -> Iterator[Decision]:
    for room in home.rooms:
        if room.left_usd >= room.budget.cap_usd * LOW_SHARE:
            continue
        team = room.budget.team
        studies = (
            study
            for study in home.current.values()
            if Permission.MANAGE in home.permissions[study.pk]
            and (study.pk == room.budget.study_id if team is None else study.team_id == team.pk)
        )
        if (study := next(studies, None)) is None:
            continue
        fact = _("The budget is nearly spent: $%(left).2f of $%(cap).2f is left.")
        url, about = _page("launch", study), _about(study)
        if team is not None:
            url = reverse("console:connections", args=[team.slug])
            about = {"about": team.name, "about_url": reverse("console:team", args=[team.slug])}
        yield Decision(
            "warning",
            fact % {"left": max(room.left_usd, Decimal(0)), "cap": room.budget.cap_usd},
            _("Change the budget"),
            url,
            _("$%(usd).2f are committed or spent.") % {"usd": room.committed_usd},
            "budget",
            **about,
            since=timezone.now(),
        )


def _failed_jobs(home: Home) -> Iterator[Decision]:
    """Jobs that failed, and that nobody has requested again since; not those of so long ago that
    others of their time are forgotten."""
    subjects = {subject_of(study): study for study in home.current.values()}
    jobs = Job.objects.filter(subject__in=subjects)
    newest = jobs.order_by().values("subject", "kind", "title").annotate(last=Max("pk"))
    failures = Job.objects.filter(
        pk__in=newest.values("last"), state=Job.State.FAILED, finished_at__isnull=False
    )
    if days := timedelta(days=settings.WORK_KEEP_DAYS):
        failures = failures.filter(finished_at__gte=timezone.now() - days)
    for job in failures:
        study = subjects[job.subject]
        if Permission.ANALYSE in home.permissions[study.pk]:
            yield Decision(
                "warning",
                _("“%(job)s” failed.") % {"job": job.title},
                _("Look at it"),
                _page("study", study),
                job.message[:200],
                "failed_job",
                **_about(study),
                since=job.finished_at or job.created_at,
            )


def _disputes(home: Home) -> Iterator[Decision]:
    studies = Study.objects.filter(
        ~Exists(LabelSet.objects.filter(study=OuterRef("pk"))), pk__in=list(home.current)
    ).order_by()
    for pk, n_disputed, n_decided in studies.values_list(
        "pk",
        newest_fact(AGREEMENT, "n_disputed"),
        counted(Adjudication.objects.standing(), "question__study"),
    ):
        study, n = home.current[pk], (n_disputed or 0) - n_decided
        if n > 0 and Permission.ADJUDICATE in home.permissions[pk]:
            note = _("Decide them, or make labels of the judgments as they are. It costs nothing.")
            yield dispute_decision(
                study,
                n,
                **_about(study) | {"note": note, "code": "disputes"},
                since=study.created_at,
            )
