"""Who may stop a job and resume it, and what of its message somebody may read: what is done at a
marketplace says what it cost, and a marketplace that refuses names assignments and workers; a judge
that ends early says what it may cost."""

from __future__ import annotations

from collections.abc import Container

from django.utils.translation import gettext as _

from accounts.roles import Permission
from annotation.study_jobs import (
    ANSWER_BY_CROWD,
    CHECK_LAUNCH,
    COLLECT,
    COLLECT_NEW,
    CONNECT,
    LABEL,
    PLAN_SCORE,
    PUBLISH,
    RECRUIT,
    RESULT,
    REVIEW,
    SCORE,
)
from hits.jobs import APPLY_CHANGES
from metrics.scoring_requests import asks_an_endpoint
from metrics.study_judges import is_judge
from retrieval.deletion import DELETE_COLLECTION
from retrieval.result_kinds.audit import AUDIT
from retrieval.result_kinds.comparison import COMPARE
from retrieval.result_kinds.evaluation import EVALUATE
from retrieval.result_kinds.machine import COMPARE_MACHINE
from retrieval.result_kinds.reuse import ESTIMATE_REUSE
from simulation.stored_dialogue_reports import REPORT_DIALOGUES
from work.models import Job

COLLECTIONS = {COLLECT, COLLECT_NEW}
# What came of them is a count of answers, and nothing of money.
COUNTED = COLLECTIONS | {ANSWER_BY_CROWD}
AT_A_MARKETPLACE = COLLECTIONS | {PUBLISH, CHECK_LAUNCH, CONNECT, RECRUIT, REVIEW}
AT_A_MARKETPLACE |= {APPLY_CHANGES, ANSWER_BY_CROWD}
# What somebody may do who may also stop or resume a job of this kind.
CONTROLLED_BY = {
    **dict.fromkeys((SCORE, PLAN_SCORE, RESULT, LABEL), Permission.ANALYSE),
    **dict.fromkeys(
        (EVALUATE, COMPARE, COMPARE_MACHINE, ESTIMATE_REUSE, AUDIT), Permission.ANALYSE
    ),
    REPORT_DIALOGUES: Permission.ANALYSE,
    **dict.fromkeys(
        (PUBLISH, CHECK_LAUNCH, APPLY_CHANGES, RECRUIT, ANSWER_BY_CROWD), Permission.SPEND
    ),
    REVIEW: Permission.REVIEW,
    DELETE_COLLECTION: Permission.OWN,
}


def needed_to_control(job: Job, *, resumes: bool) -> list[Permission]:
    """What somebody must be allowed to stop a job, or to resume it: who may request one like it.
    Whoever may request scoring may stop a judge that somebody else pays for, but not resume it."""
    needed = [CONTROLLED_BY.get(job.kind, Permission.EDIT)]
    return [*needed, Permission.SPEND] if resumes and asks_an_endpoint(job) else needed


def message_for(job: Job, permissions: Container[str]) -> str:
    """The message, or that it is for others."""
    if not job.message or all(each in permissions for each in _needed(job)):
        return job.message
    return _("What came of it is for those who may see costs and workers.")


def _needed(job: Job) -> set[Permission]:
    """What somebody must be allowed to read what came of a job."""
    is_done = job.state == Job.State.DONE
    if job.kind in (SCORE, PLAN_SCORE):
        asks_judge = any(map(is_judge, job.arguments.get("names", [])))
        # The cap that stopped it, and what was spent.
        return {Permission.VIEW_MONEY} if asks_judge and not is_done else set()
    if job.kind not in AT_A_MARKETPLACE:
        return set()
    if not is_done:
        return {Permission.VIEW_MONEY, Permission.VIEW_WORKERS}
    # Counts, and what was paid.
    return set() if job.kind in COUNTED else {Permission.VIEW_MONEY}
