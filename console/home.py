"""What waits for a person over all their studies, and how each study stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Count, Max, Min, Q
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import User
from accounts.roles import Permission
from annotation.access import permissions_by_study
from annotation.models import Study
from annotation.study_jobs import subject_of
from console.stages import DONE, LATER, NEEDS_YOU, SIGNS
from hits.changes import expiry_of
from hits.models import Assignment, Batch
from hits.spending import spent_by_study
from work.models import Job

# An end that comes later than this is nobody's decision yet.
SOON = timedelta(days=2)
MOST_DECISIONS = 20
URGENT, WARNING, OPEN = range(3)
SIGN_OF = {URGENT: "!", WARNING: "▲", OPEN: "○"}


@dataclass(frozen=True)
class HomeDecision:
    """One thing to decide: the fact, whose study, and the button that leads there."""

    urgency: int
    due: datetime
    fact: str
    note: str
    study: Study
    button: str
    url: str

    @property
    def sign(self) -> str:
        return SIGN_OF[self.urgency]


@dataclass(frozen=True)
class BatchStanding:
    """What a batch has and lacks."""

    batch: Batch
    n_wanted: int
    n_collected: int
    n_undecided: int
    n_flagged: int
    first_undecided_at: datetime | None
    n_unreadable: int

    @property
    def first_approval_at(self) -> datetime | None:
        """When the marketplace approves the first of the undecided by itself."""
        if self.first_undecided_at is None:
            return None
        delay = timedelta(seconds=self.batch.auto_approval_delay_seconds)
        return self.first_undecided_at + delay


@dataclass(frozen=True)
class StudyRow:
    """A study in the list: its stage in a word, what is collected, what was spent."""

    study: Study
    state: str
    stage: str
    n_collected: int
    n_wanted: int
    spent_usd: Decimal | None

    @property
    def sign(self) -> str:
        return SIGNS[self.state]


def batch_standings(studies: Sequence[Study]) -> list[BatchStanding]:
    """Every published batch of the studies, in three statements."""
    batches = Batch.objects.filter(study__in=studies).started().progressing()
    rows = Assignment.objects.filter(hit__batch__study__in=studies).order_by()
    undecided = Q(status=Assignment.Status.SUBMITTED, decision="")
    of_batch = {
        row["hit__batch"]: row
        for row in rows.values("hit__batch").annotate(
            n_undecided=Count("pk", filter=undecided),
            n_flagged=Count("pk", filter=undecided & ~Q(submission__flag_reason="")),
            first=Min("submitted_at", filter=undecided),
            n_unreadable=Count("pk", filter=Q(submission=None) & ~Q(problem="")),
        )
    }
    return [_standing(batch, of_batch.get(batch.pk, {})) for batch in batches]


def _standing(batch: Batch, row: Mapping[str, object]) -> BatchStanding:
    counts = {name: int(str(row.get(name) or 0)) for name in ("n_undecided", "n_flagged")}
    first = row.get("first")
    return BatchStanding(
        batch=batch,
        n_wanted=batch.n_published * (batch.max_assignments + batch.n_added),
        n_collected=batch.n_collected,
        first_undecided_at=first if isinstance(first, datetime) else None,
        n_unreadable=int(str(row.get("n_unreadable") or 0)),
        **counts,
    )


class Home:
    """A person's studies: what waits for a decision in any, and how each on the page stands."""

    def __init__(self, user: User, studies: Sequence[Study]) -> None:
        self.studies = {study.pk: study for study in studies}
        self.permissions = permissions_by_study(studies, user)
        self.standings = batch_standings(studies)

    def decisions(self) -> list[HomeDecision]:
        """What waits for this person's decision, most pressing first."""
        waiting = [
            *_of_batches(self.studies, self.permissions, self.standings),
            *_failed_jobs(self.studies, self.permissions),
        ]
        return sorted(waiting, key=lambda one: (one.urgency, one.due))[:MOST_DECISIONS]

    def rows(self, listed: Sequence[Study]) -> list[StudyRow]:
        """Those of the studies, which must come from `counted()`, as rows of the list."""
        of_study: dict[int, list[BatchStanding]] = {}
        for standing in self.standings:
            of_study.setdefault(standing.batch.study_id, []).append(standing)
        spent = spent_by_study([study for study in listed if study.pk in of_study])
        return [
            _row(study, of_study.get(study.pk, []), self._spent(study, spent)) for study in listed
        ]

    def _spent(self, study: Study, spent: Mapping[int, Decimal]) -> Decimal | None:
        may = Permission.VIEW_MONEY in self.permissions[study.pk]
        return spent.get(study.pk) if may else None


def _of_batches(
    studies: Mapping[int, Study],
    permissions: Mapping[int, frozenset[Permission]],
    standings: Sequence[BatchStanding],
) -> Iterator[HomeDecision]:
    for standing in standings:
        study = studies[standing.batch.study_id]
        may = permissions[study.pk]
        if Permission.REVIEW in may:
            yield from _reviews(study, standing)
        if Permission.SPEND in may:
            yield from _ends(study, standing)


def _reviews(study: Study, standing: BatchStanding) -> Iterator[HomeDecision]:
    due, n = standing.first_approval_at, standing.n_undecided
    if due is not None:
        fact = ngettext(
            "%(n)s submission is approved by itself on %(at)s UTC.",
            "%(n)s submissions are approved by themselves, the first on %(at)s UTC.",
            n,
        )
        flagged = ngettext(
            "%(n)s of them is flagged.", "%(n)s of them are flagged.", standing.n_flagged
        )
        yield HomeDecision(
            urgency=URGENT if due - timezone.now() < SOON else OPEN,
            due=due,
            fact=fact % {"n": f"{n:,}", "at": f"{due:%Y-%m-%d %H:%M}"},
            note=flagged % {"n": standing.n_flagged} if standing.n_flagged else "",
            study=study,
            button=_("Review %(n)s") % {"n": f"{n:,}"},
            url=reverse("console:review", args=[study.slug]),
        )
    if n := standing.n_unreadable:
        fact = ngettext("%(n)s answer could not be read.", "%(n)s answers could not be read.", n)
        yield HomeDecision(
            urgency=WARNING,
            due=standing.batch.created_at,
            fact=fact % {"n": f"{n:,}"},
            note="",
            study=study,
            button=_("See why"),
            url=reverse("console:answers", args=[study.slug]),
        )


def _ends(study: Study, standing: BatchStanding) -> Iterator[HomeDecision]:
    batch, n_missing = standing.batch, standing.n_wanted - standing.n_collected
    end, now = expiry_of(batch), timezone.now()
    if n_missing <= 0 or batch.closed_at or end - now > SOON:
        return
    is_over = end <= now
    if is_over:
        fact = ngettext(
            "A batch has expired with %(n)s assignment missing.",
            "A batch has expired with %(n)s assignments missing.",
            n_missing,
        )
    else:
        fact = ngettext(
            "A batch expires on %(at)s UTC with %(n)s assignment still open.",
            "A batch expires on %(at)s UTC with %(n)s assignments still open.",
            n_missing,
        )
    yield HomeDecision(
        urgency=WARNING,
        due=end,
        fact=fact % {"n": f"{n_missing:,}", "at": f"{end:%Y-%m-%d %H:%M}"},
        note=_("Batch %(pk)s, round %(round)s.") % {"pk": batch.pk, "round": batch.round},
        study=study,
        button=_("Offer again") if is_over else _("Extend"),
        url=reverse(
            "console:batch-change", args=[study.slug, batch.pk, "repost" if is_over else "extend"]
        ),
    )


def _failed_jobs(
    studies: Mapping[int, Study], permissions: Mapping[int, frozenset[Permission]]
) -> Iterator[HomeDecision]:
    """Jobs that failed, and that nobody has requested again since."""
    subjects = {subject_of(study): study for study in studies.values()}
    jobs = Job.objects.filter(subject__in=subjects)
    newest = jobs.order_by().values("subject", "kind", "title").annotate(last=Max("pk"))
    failed = Job.objects.filter(
        pk__in=newest.values("last"), state=Job.State.FAILED, finished_at__isnull=False
    )
    for job in failed:
        study = subjects[job.subject]
        if Permission.ANALYSE not in permissions[study.pk]:
            continue
        yield HomeDecision(
            urgency=WARNING,
            due=job.finished_at or job.created_at,
            fact=_("“%(job)s” failed.") % {"job": job.title},
            note=job.message[:200],
            study=study,
            button=_("Look at it"),
            url=reverse("console:study", args=[study.slug]),
        )


def _row(study: Study, standings: list[BatchStanding], spent_usd: Decimal | None) -> StudyRow:
    n_wanted = sum(one.n_wanted for one in standings)
    n_collected = sum(one.n_collected for one in standings)
    state, stage = _stage(study, standings, is_complete=n_collected >= n_wanted)
    return StudyRow(study, state, stage, n_collected, n_wanted, spent_usd)


def _stage(study: Study, standings: list[BatchStanding], *, is_complete: bool) -> tuple[str, str]:
    if not standings:
        has_items, has_judgments = getattr(study, "n_items", 0), getattr(study, "n_judgments", 0)
        if has_judgments:
            return DONE, _("Imported")
        return (LATER, _("Launch")) if has_items else (LATER, _("Items"))
    if any(one.n_undecided or one.n_unreadable for one in standings):
        return NEEDS_YOU, _("Review")
    if is_complete:
        return DONE, _("Done")
    is_over = all(
        one.batch.closed_at or expiry_of(one.batch) <= timezone.now() for one in standings
    )
    return (NEEDS_YOU, _("Incomplete")) if is_over else ("active", _("Collecting"))
