import json
from collections.abc import Collection, Iterator
from typing import Any

from django.db import transaction
from django.db.models import Exists
from django.utils import timezone
from django.utils.translation import gettext as _, gettext_lazy, ngettext

from accounts.audit import record
from accounts.models import User
from accounts.roles import Permission
from annotation.exports import item_stretches
from annotation.models import Candidate, Item, Judgment, LabelSet, Study, Submission
from annotation.study_facts import jobs_of, request_study_job
from annotation.study_files import Offer, RowDownload, register_table
from annotation.submission_imports import pseudonym
from error_codes import CodedText
from hits.exceptions import BatchUnfit, StudyUnfinished
from hits.models import (
    Assignment,
    Batch,
    Budget,
    DraftDecision,
    Hit,
    Message,
    Payment,
    PracticeAnswer,
    RecruiterCall,
    Recruitment,
)
from hits.practice import PracticePage, practice_page
from metrics.models import Score
from presentation.row_files import Kind, RowFile
from work.models import Job


def unfinished_work(study: Study) -> list[CodedText]:
    return list(_unfinished(study))


def _unfinished(study: Study) -> Iterator[CodedText]:
    now = timezone.now()
    batches = Batch.objects.of(study).started().filter(closed_at=None)
    if n := sum(batch.offered_until > now for batch in batches):
        yield CodedText(
            ngettext(
                "%(n)s batch is still on offer. Let it expire, or close it.",
                "%(n)s batches are still on offer. Let them expire, or close them.",
                n,
            )
            % {"n": n},
            "open_batches",
        )
    if n := Recruitment.objects.of(study).live().count():
        yield CodedText(
            ngettext(
                "%(n)s study is open at a recruiter. Stop it.",
                "%(n)s studies are open at a recruiter. Stop them.",
                n,
            )
            % {"n": n},
            "open_studies",
        )
    calls = RecruiterCall.objects.to_look_after()
    if n := calls.filter(recruitment__batch__study=study).count():
        yield CodedText(
            ngettext(
                "%(n)s call to a recruiter waits for you: settle it, or put it away.",
                "%(n)s calls to a recruiter wait for you: settle them, or put them away.",
                n,
            )
            % {"n": n},
            "calls_to_look_after",
        )
    if n := Assignment.objects.undecided().filter(hit__batch__study=study).count():
        yield CodedText(
            ngettext(
                "%(n)s submission waits for your decision.",
                "%(n)s submissions wait for your decision.",
                n,
            )
            % {"n": f"{n:,}"},
            "undecided_work",
        )
    if n := DraftDecision.objects.of(study).count():
        yield CodedText(
            ngettext("%(n)s decision is not sent.", "%(n)s decisions are not sent.", n)
            % {"n": f"{n:,}"},
            "unsent_decisions",
        )


@transaction.atomic
def archive_study(*, study: Study, actor: User | None) -> None:
    row = Study.objects.select_for_update(of=("self",)).get(pk=study.pk)
    if row.archived_at is not None:
        return
    if reasons := unfinished_work(row):
        raise StudyUnfinished(" ".join(reasons))
    Study.objects.filter(pk=row.pk).update(archived_at=timezone.now())
    record(team=row.team, actor=actor, action="study.archive", subject=row.slug)


@transaction.atomic
def restore_study(*, study: Study, actor: User | None) -> None:
    if Study.objects.archived().filter(pk=study.pk).update(archived_at=None):
        record(team=study.team, actor=actor, action="study.restore", subject=study.slug)


def require_current(study: Study) -> None:
    if study.archived_at is not None:
        raise BatchUnfit(
            _("Study '{slug}' is in the archive. Take it out to launch.").format(slug=study.slug),
            code="archived",
        )


DELETE_STUDY = "delete_study"
# With more judgments a study is deleted in the background.
AT_ONCE_JUDGMENTS = 5_000


def contents_of(study: Study) -> dict[str, int]:
    return {
        "items": Item.objects.filter(study=study).count(),
        "candidates": Candidate.objects.filter(item__study=study).count(),
        "submissions": Submission.objects.filter(item__study=study).count(),
        "judgments": Judgment.objects.filter(question__study=study).count(),
        "label_sets": LabelSet.objects.filter(study=study).count(),
        "scores": Score.objects.filter(run__study=study).count(),
        "hits": Hit.objects.filter(batch__study=study).count(),
        "assignments": Assignment.objects.filter(hit__batch__study=study).count(),
    }


def obstacles_to_deletion(study: Study) -> list[CodedText]:
    return list(_obstacles(study))


def _obstacles(study: Study) -> Iterator[CodedText]:
    yield from unfinished_work(study)
    if n := Payment.objects.of(study).unsent().count():
        yield CodedText(
            ngettext("%(n)s payment is not sent.", "%(n)s payments are not sent.", n)
            % {"n": f"{n:,}"},
            "unsent_payments",
        )
    if jobs_of(study).unfinished().exclude(kind=DELETE_STUDY).exists():
        yield CodedText(
            _("A job on it is under way. Wait for its end, or stop it."), "job_under_way"
        )
    has_cap = study.team_id is not None and Budget.objects.filter(team=study.team_id).exists()
    paid = (Assignment.objects, PracticeAnswer.objects)
    # Deleting what was spent would give it to a team to be spent again.
    if has_cap and any(rows.filter(hit__batch__study=study).exists() for rows in paid):
        yield CodedText(
            _(
                "What its answers cost counts against the team's budget, which would be "
                "forgotten. Put the study into the archive instead."
            ),
            "counts_against_budget",
        )


@transaction.atomic
def remove_study(*, study: Study, actor: User | None) -> Job | None:
    if contents_of(study)["judgments"] <= AT_ONCE_JUDGMENTS:
        delete_study(study=study, actor=actor)
        return None
    if reasons := obstacles_to_deletion(study):
        raise StudyUnfinished(" ".join(reasons))
    # Out of the way at once: nothing is launched of it any more.
    Study.objects.filter(pk=study.pk).update(archived_at=timezone.now())
    return request_study_job(study=study, kind=DELETE_STUDY, requested_by=actor)


@transaction.atomic
def delete_study(*, study: Study, actor: User | None) -> None:
    row = Study.objects.select_for_update(of=("self",)).get(pk=study.pk)
    if reasons := obstacles_to_deletion(row):
        raise StudyUnfinished(" ".join(reasons))
    contents = contents_of(row)
    team, slug, title = row.team, row.slug, row.title
    for rehearsal in Study.objects.filter(rehearsal_of=row):
        delete_contents(rehearsal)
    delete_contents(row)
    record(
        team=team,
        actor=actor,
        action="study.delete",
        subject=slug,
        details={"title": title, **contents},
    )


def delete_contents(study: Study) -> None:
    """Delete a study with all that was made of it, whatever is unfinished."""
    of_assignments = {"assignment__hit__batch__study": study}
    Payment.objects.filter(**of_assignments).delete()
    Message.objects.filter(**of_assignments).delete()
    Assignment.objects.filter(hit__batch__study=study).delete()
    Hit.objects.filter(batch__study=study).delete()
    Recruitment.objects.filter(batch__study=study).delete()
    Batch.objects.filter(study=study).delete()
    Submission.objects.filter(item__study=study).delete()
    jobs_of(study).finished().delete()
    study.delete()


# The annotator is a pseudonym; no marketplace's id of a worker may stand here.
COLUMNS = {
    "study": "item__study__slug",
    "round": "round",
    "item": "item__key",
    "condition": "item__condition",
    "annotator": "annotator__pseudonym",
    "hit_id": "assignment__hit__hit_id",
    "assignment_id": "assignment__assignment_id",
    "status": "status",
    "accepted_at": "accepted_at",
    "submitted_at": "submitted_at",
    "seconds": "seconds",
    "active_seconds": "active_seconds",
    "pasted": "pasted",
    "justification": "justification",
    "comment": "comment",
    "flag_reason": "flag_reason",
    "protocol": "protocol__number",
    "consented_at": "consented_at",
    "simulated": "is_simulated",
    "shown_order": "shown_order",
}
KINDS: dict[str, Kind] = {
    **dict.fromkeys(COLUMNS, "text"),
    **dict.fromkeys(("round", "protocol"), "integer"),
    **dict.fromkeys(("accepted_at", "submitted_at", "consented_at"), "time"),
    **dict.fromkeys(("seconds", "active_seconds"), "number"),
    **dict.fromkeys(("pasted", "simulated", "flagged"), "boolean"),
}
NAMES = list(KINDS)
# What may be published: nothing of the marketplace's, and no words but the judgments'.
PUBLIC_NAMES = (
    *("study", "round", "item", "condition", "annotator", "status", "accepted_at", "submitted_at"),
    *("seconds", "active_seconds", "pasted", "protocol", "simulated", "flagged"),
)


def marketplace_ids(submissions: Collection[int]) -> dict[int, tuple[str, str]]:
    return {
        submission: (hit, assignment)
        for submission, hit, assignment in Assignment.objects.filter(submission__in=submissions)
        .order_by()
        .values_list("submission", "hit__hit_id", "assignment_id")
    }


def submission_rows(study: Study) -> RowFile:
    return RowFile(KINDS, _rows(study))


def public_submission_rows(study: Study) -> RowFile:
    indices = [NAMES.index(name) for name in PUBLIC_NAMES]
    return RowFile(
        {name: KINDS[name] for name in PUBLIC_NAMES},
        (tuple(row[index] for index in indices) for row in _rows(study)),
    )


def _rows(study: Study) -> Iterator[tuple[Any, ...]]:
    flag_reason, order = (list(COLUMNS).index(name) for name in ("flag_reason", "shown_order"))
    for items in item_stretches(study):
        for values in (
            Submission.objects.filter(item__in=items)
            .order_by("item__position", "item_id", "round", "annotator__pseudonym")
            .values_list(*COLUMNS.values())
        ):
            keys = json.dumps(values[order], ensure_ascii=False)
            yield (*values[:order], keys, *values[order + 1 :], bool(values[flag_reason]))


# The annotator is a pseudonym, as in submissions; no marketplace's id of a worker may stand here.
PRACTICE_KINDS: dict[str, Kind] = {
    **{"study": "text", "round": "integer", "practice": "boolean", "item": "text"},
    **{"annotator": "text", "hit_id": "text", "assignment_id": "text", "status": "text"},
    **{"accepted_at": "time", "submitted_at": "time", "passed": "boolean"},
    **{"n_right": "integer", "n_graded": "integer", "problem": "text"},
    **{"candidate": "text", "question": "text", "value": "number"},
    **{"right_from": "number", "right_to": "number", "right": "boolean"},
}
ANSWERS_AT_ONCE = 500


def practice_answer_rows(study: Study) -> RowFile:
    return RowFile(PRACTICE_KINDS, _practice_rows(study))


def _practice_rows(study: Study) -> Iterator[tuple[Any, ...]]:
    answers = PracticeAnswer.objects.filter(hit__batch__study=study)
    answers = answers.select_related("worker", "hit__batch__study", "hit__batch__protocol")
    pages: dict[tuple[int, int], PracticePage] = {}
    for answer in answers.order_by("submitted_at", "pk").iterator(ANSWERS_AT_ONCE):
        batch, number = answer.hit.batch, answer.hit.number
        if (page := pages.get((batch.pk, number))) is None:
            page = pages[batch.pk, number] = practice_page(study, batch.document, number)
        for values in _graded(page, answer):
            yield (*_common(study, page, answer), *values)


def _common(study: Study, page: PracticePage, answer: PracticeAnswer) -> tuple[Any, ...]:
    worker = answer.worker
    return (
        *(study.slug, answer.hit.batch.round, True, page.item.key),
        pseudonym(study, f"{worker.marketplace}:{worker.worker_id}"),
        *(answer.hit.hit_id, answer.assignment_id, answer.status),
        *(answer.accepted_at, answer.submitted_at, answer.is_passed),
        *(answer.n_right, answer.n_graded, answer.problem),
    )


def _graded(page: PracticePage, answer: PracticeAnswer) -> Iterator[tuple[Any, ...]]:
    keys: dict[str | None, str] = {each.blind_key: each.key for each in page.item.candidates.all()}
    # What could be read when it came in can be now.
    graded = [] if answer.problem else page.graded(answer.answer_xml)
    for each in graded:
        span = each.right.range
        own = (keys.get(each.right.candidate), each.right.question, each.value)
        yield (*own, span.least, span.most, each.is_right)
    if not graded:
        yield (None,) * 6


register_table(
    "submissions",
    RowDownload(
        gettext_lazy("every submission: who, when, how long, reason, comment, status and flag"),
        submission_rows,
        Permission.VIEW_WORKERS,
    ),
    Offer(20, is_of_judgments=True),
)
register_table(
    "practice",
    RowDownload(
        gettext_lazy("every answer of practice, which is no submission, beside what is right"),
        practice_answer_rows,
        Permission.VIEW_WORKERS,
    ),
    Offer(
        50, lambda study: Exists(PracticeAnswer.objects.filter(hit__batch__study=study).order_by())
    ),
)
