"""What waits for a person's decision over all their studies: fact, cost, and the button."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.conf import settings
from django.db.models import Exists, Max, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _, ngettext

from accounts.roles import Permission
from annotation.models import Adjudication, AgreementVersion, LabelSet, Study
from annotation.models.studies import counted
from annotation.study_jobs import subject_of
from hits.budgets import Room
from hits.pages.todos import calls_to_look_after, places_in_vain, undrafted_batches
from hits.progress import BatchStanding
from hits.wages import duration_words, durations_of_batches, reward_for, wage_of
from work.models import Job

# An end that comes later than this is nobody's decision yet.
SOON = timedelta(days=2)
LOW_SHARE = Decimal("0.1")
"""Of a budget, below which money is running out."""
# What is open waits on nobody's work and money, and no time decides it.
URGENT, WARNING, OPEN = range(3)
SIGN_OF = {URGENT: "!", WARNING: "▲", OPEN: "○"}


@dataclass(frozen=True)
class HomeDecision:
    """One thing to decide: the fact, of which study or team, what it costs, and the button.

    `due` is when time decides it, if time does; `since` orders what no time decides.
    """

    urgency: int
    due: datetime | None
    since: datetime
    fact: str
    note: str
    button: str
    url: str
    about: str
    about_url: str
    code: str

    @property
    def sign(self) -> str:
        return SIGN_OF[self.urgency]

    @property
    def order(self) -> tuple[int, bool, datetime]:
        """Most pressing first: of equals, what time decides by its date, then the oldest."""
        return self.urgency, self.due is None, self.due or self.since


@dataclass(frozen=True)
class Material:
    """What decisions are read from: studies, what the person may do in each, batches, budgets."""

    studies: Mapping[int, Study]
    permissions: Mapping[int, frozenset[Permission]]
    standings: Sequence[BatchStanding]
    rooms: Sequence[Room]

    def may(self, study: Study, permission: Permission) -> bool:
        return permission in self.permissions[study.pk]

    def current_standings(self, permission: Permission) -> Iterator[tuple[Study, BatchStanding]]:
        for standing in self.standings:
            study = self.studies.get(standing.batch.study_id)
            if study is not None and self.may(study, permission):
                yield study, standing


def waiting_decisions(material: Material) -> Iterator[HomeDecision]:
    """All that waits, in no order."""
    for study, standings in _by_study(material, Permission.REVIEW):
        yield from _reviews(study, standings)
        yield from _appeals(study, standings)
        yield from _unreadable(study, standings)
    for study, standing in material.current_standings(Permission.SPEND):
        yield from _ends(study, standing)
    yield from _of_participants(material)
    yield from _pay_under_floors(material)
    yield from _low_budgets(material)
    yield from _failed_jobs(material)
    yield from _disputes(material)


def _of_participants(material: Material) -> Iterator[HomeDecision]:
    """What waits at recruiters, or has nobody come to it."""
    spent = material.current_standings(Permission.SPEND)
    batches = [one.batch for _study, one in spent if one.batch.is_recruited]
    mine = {batch.study_id for batch in batches}
    for one in (*calls_to_look_after(mine), *places_in_vain(mine), *undrafted_batches(batches)):
        study = material.studies[one.batch.study_id]
        urgency = URGENT if one.tone == "error" else WARNING
        now = timezone.now()
        facts = (one.message, one.note, one.action, one.url)
        yield _decision(study, urgency, now, *facts, code="recruiting")


def _by_study(
    material: Material, permission: Permission
) -> Iterator[tuple[Study, list[BatchStanding]]]:
    """The batches of each study together: they are decided on the same page."""
    groups: dict[int, list[BatchStanding]] = {}
    for study, standing in material.current_standings(permission):
        groups.setdefault(study.pk, []).append(standing)
    for pk, standings in groups.items():
        yield material.studies[pk], standings


def _decision(
    study: Study,
    urgency: int,
    since: datetime,
    fact: str,
    note: str,
    button: str,
    url: str,
    *,
    code: str,
    due: datetime | None = None,
) -> HomeDecision:
    about_url = reverse("console:study", args=[study.slug])
    about = (study.title, about_url)
    return HomeDecision(urgency, due, since, fact, note, button, url, *about, code)


def _page(name: str, study: Study, *parts: object, **query: object) -> str:
    return reverse(f"console:{name}", args=[study.slug, *parts], query=query)


def _at(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M}"


def _reviews(study: Study, standings: Sequence[BatchStanding]) -> Iterator[HomeDecision]:
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
    notes = [flagged % {"n": n_flagged}] if n_flagged else []
    if not usd and any(one.batch.is_recruited for one in standings):
        cost = _("The recruiter pays its participants.")
    yield _decision(
        study,
        URGENT if due - timezone.now() < SOON else WARNING,
        due,
        fact % {"n": f"{n:,}", "at": _at(due)},
        " ".join([*notes, cost % {"usd": usd}]),
        _("Review %(n)s") % {"n": f"{n:,}"},
        _page("review", study),
        code="review",
        due=due,
    )


def _appeals(study: Study, standings: Sequence[BatchStanding]) -> Iterator[HomeDecision]:
    dates = [one.first_appeal_at for one in standings if one.first_appeal_at]
    if not dates:
        return
    first, n = min(dates), sum(one.n_appeals for one in standings)
    usd = sum((one.price_of(one.n_appeals) for one in standings), Decimal(0))
    yield _decision(
        study,
        URGENT,
        first,
        ngettext(
            "A worker asks you to look again at a rejection.",
            "%(n)s workers ask you to look again at a rejection.",
            n,
        )
        % {"n": f"{n:,}"},
        ngettext(
            "Paying after all costs $%(usd).2f with fees.",
            "Paying all after all costs $%(usd).2f with fees.",
            n,
        )
        % {"usd": usd},
        ngettext("Read the appeal", "Read %(n)s appeals", n) % {"n": f"{n:,}"},
        _page("review", study, show="rejected"),
        code="appeal",
    )


def _unreadable(study: Study, standings: Sequence[BatchStanding]) -> Iterator[HomeDecision]:
    of_batches = [one for one in standings if one.n_unreadable]
    if not of_batches:
        return
    n = sum(one.n_unreadable for one in of_batches)
    usd = sum((one.unreadable_usd for one in of_batches), Decimal(0))
    fact = ngettext("%(n)s answer could not be read.", "%(n)s answers could not be read.", n)
    yield _decision(
        study,
        WARNING,
        of_batches[0].batch.created_at,
        fact % {"n": f"{n:,}"},
        _("Unless rejected they cost $%(usd).2f with fees.") % {"usd": usd} if usd else "",
        ngettext("See why", "See why for %(n)s", n) % {"n": f"{n:,}"},
        _page("answers", study),
        code="unreadable",
    )


def _ends(study: Study, standing: BatchStanding) -> Iterator[HomeDecision]:
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
    yield _decision(
        study,
        WARNING,
        end,
        fact % {"n": f"{n_missing:,}", "at": _at(end)},
        f"{about} {cost % {'usd': standing.missing_usd} if is_over else cost}",
        button % {"n": f"{n_missing:,}"},
        _page("batch-change", study, batch.pk, change),
        code=change,
        due=None if is_over else end,
    )


def _pay_under_floors(material: Material) -> Iterator[HomeDecision]:
    """The newest batch of each study that pays a typical worker less than the team's floor."""
    newest = {
        study.pk: (study, standing)
        for study, standing in material.current_standings(Permission.SPEND)
        if study.team and study.team.wage_floor_usd and standing.n_collected
    }
    paid_here = [pair for pair in newest.values() if not pair[1].batch.is_recruited]
    open_ones = [pair for pair in paid_here if pair[1].batch.closed_at is None]
    durations = durations_of_batches([(standing.batch, study) for study, standing in open_ones])
    for study, standing in open_ones:
        duration = durations.get(standing.batch.pk)
        floor = study.team.wage_floor_usd if study.team else None
        if duration is None or floor is None:
            continue
        wage = wage_of(standing.batch.reward_usd, duration).typical_usd
        if wage >= floor:
            continue
        fact = _("Batch %(pk)s pays $%(wage).2f an hour; your team’s floor is $%(floor).2f.")
        note = _(
            "%(n)s of %(wanted)s collected, median %(time)s. At $%(usd).2f a HIT the floor is met."
        )
        yield _decision(
            study,
            WARNING,
            standing.batch.created_at,
            fact % {"pk": standing.batch.pk, "wage": wage, "floor": floor},
            note
            % {
                "n": f"{standing.n_collected:,}",
                "wanted": f"{standing.n_offered:,}",
                "time": duration_words(duration.typical_seconds),
                "usd": reward_for(floor, duration),
            },
            _("Set the pay"),
            _page("launch", study),
            code="pay",
        )


def _low_budgets(material: Material) -> Iterator[HomeDecision]:
    """Budgets of which less than a tenth is left, for those who may raise them."""
    for room in material.rooms:
        if room.left_usd >= room.budget.cap_usd * LOW_SHARE:
            continue
        team = room.budget.team
        studies = [
            study
            for study in material.studies.values()
            if material.may(study, Permission.MANAGE)
            and (study.pk == room.budget.study_id if team is None else study.team_id == team.pk)
        ]
        if not studies:
            continue
        study = studies[0]
        fact = _("The budget is nearly spent: $%(left).2f of $%(cap).2f is left.")
        if team is not None:
            url = reverse("console:connections", args=[team.slug])
            about, about_url = team.name, reverse("console:team", args=[team.slug])
        else:
            url = _page("launch", study)
            about, about_url = study.title, _page("study", study)
        left_usd = max(room.left_usd, Decimal(0))
        yield HomeDecision(
            WARNING,
            None,
            timezone.now(),
            fact % {"left": left_usd, "cap": room.budget.cap_usd},
            _("$%(usd).2f are committed or spent.") % {"usd": room.committed_usd},
            _("Change the budget"),
            url,
            about,
            about_url,
            "budget",
        )


def _failed_jobs(material: Material) -> Iterator[HomeDecision]:
    """Jobs that failed, and that nobody has requested again since; not those of so long ago that
    others of their time are forgotten."""
    subjects = {subject_of(study): study for study in material.studies.values()}
    jobs = Job.objects.filter(subject__in=subjects)
    newest = jobs.order_by().values("subject", "kind", "title").annotate(last=Max("pk"))
    failures = Job.objects.filter(
        pk__in=newest.values("last"), state=Job.State.FAILED, finished_at__isnull=False
    )
    if days := timedelta(days=settings.WORK_KEEP_DAYS):
        failures = failures.filter(finished_at__gte=timezone.now() - days)
    for job in failures:
        study = subjects[job.subject]
        if not material.may(study, Permission.ANALYSE):
            continue
        yield _decision(
            study,
            WARNING,
            job.finished_at or job.created_at,
            _("“%(job)s” failed.") % {"job": job.title},
            job.message[:200],
            _("Look at it"),
            _page("study", study),
            code="failed_job",
        )


def _disputes(material: Material) -> Iterator[HomeDecision]:
    """Candidates on which annotators disagree widely, until labels are made or all is decided."""
    newest = AgreementVersion.objects.filter(study=OuterRef("pk")).order_by("-version")
    unlabelled = ~Exists(LabelSet.objects.filter(study=OuterRef("pk")))
    studies = Study.objects.filter(unlabelled, pk__in=list(material.studies)).order_by()
    rows = studies.values_list(
        "pk",
        Coalesce(Subquery(newest.values("n_disputed")[:1]), 0),
        counted(Adjudication.objects.standing(), "question__study"),
    )
    for pk, n_disputed, n_decided in rows:
        study, n = material.studies[pk], n_disputed - n_decided
        if n <= 0 or not material.may(study, Permission.ADJUDICATE):
            continue
        yield _decision(
            study,
            OPEN,
            study.created_at,
            ngettext(
                "%(n)s candidate on which annotators disagree widely.",
                "%(n)s candidates on which annotators disagree widely.",
                n,
            )
            % {"n": f"{n:,}"},
            _("Decide them, or make labels of the judgments as they are. It costs nothing."),
            _("Decide %(n)s") % {"n": f"{n:,}"},
            _page("adjudication", study),
            code="disputes",
        )
