from datetime import timedelta

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.exceptions import DraftChanged, WorkRefused, require
from marketplace.hits import lifecycle
from marketplace.hits.assignments import lock_assignment, require_accepted
from marketplace.models import Assignment, AssignmentDraft, PaidBy, ProblemReport

# A browser sends at most 64 KiB while it leaves a page.
LARGEST_DRAFT = 60_000  # bytes
MOST_REPORTS = 50  # of one assignment


def draft_of(assignment: Assignment) -> AssignmentDraft | None:
    return AssignmentDraft.objects.filter(assignment=assignment).first()


def save_draft(
    *, assignment: Assignment, content: str, progress: str, base_revision: int
) -> AssignmentDraft:
    """Save a draft based on a revision, 0 for the first. Raises DraftChanged if another draft was
    saved meanwhile."""
    require_accepted(assignment)
    require(
        len(content.encode("utf-8", "replace")) <= LARGEST_DRAFT,
        WorkRefused(
            _("What you entered has more than %(n)s bytes, too many to be kept here.")
            % {"n": LARGEST_DRAFT},
            code="draft_too_large",
            status=413,
        ),
    )
    values = {
        "content": content.replace("\0", "\ufffd"),
        "progress": progress.replace("\0", "")[:100],
        "revision": base_revision + 1,
        "saved_at": clock.now(),
    }
    require(
        _write(assignment, values, base_revision),
        DraftChanged(_("These answers were changed in another tab or on another device.")),
    )
    return AssignmentDraft(assignment=assignment, **values)


def delete_closed_drafts() -> int:
    closed = AssignmentDraft.objects.exclude(assignment__status=Assignment.Status.ACCEPTED)
    return closed.delete()[0]


def _write(assignment: Assignment, values: dict[str, object], base_revision: int) -> bool:
    rows = AssignmentDraft.objects.filter(assignment=assignment)
    if base_revision:
        return bool(rows.filter(revision=base_revision).update(**values))
    try:
        with transaction.atomic():
            AssignmentDraft.objects.create(assignment=assignment, **values)
    except IntegrityError:
        return False
    return True


def report_problem(*, assignment: Assignment, text: str) -> None:
    """Report a broken page to the requester; a repeated text is one report."""
    require_accepted(assignment)
    text = text.replace("\0", "").strip()[:500]
    reports = ProblemReport.objects.filter(assignment=assignment)
    if not text or reports.filter(text=text).exists() or reports.count() >= MOST_REPORTS:
        return
    ProblemReport.objects.create(assignment=assignment, text=text, created_at=clock.now())


# More time: a worker adds to the time allotted, once an assignment, as the requester allows.


def offered_seconds(assignment: Assignment) -> int:
    """Seconds that the worker may add now; 0 if none, used already, or the recruiter's to give."""
    if assignment.extended_at is not None or assignment.paid_by == PaidBy.RECRUITER:
        return 0
    hit_type = assignment.hit.hit_type
    return hit_type.assignment_duration_seconds * hit_type.requester.more_time_percent // 100


@transaction.atomic
def add_time(*, assignment: Assignment) -> Assignment:
    now = clock.now()
    assignment, hit = lock_assignment(assignment.public_id, now=now)
    require_accepted(assignment)
    seconds = offered_seconds(assignment)
    require(
        seconds,
        WorkRefused(
            _("More time can be had once, and where the requester allows it."), code="no_more_time"
        ),
    )
    assignment.deadline += timedelta(seconds=seconds)
    assignment.extended_at = now
    assignment.save(update_fields=["deadline", "extended_at"])
    lifecycle.refresh(hit, now=now, is_hold_right=True)
    return assignment
