from collections.abc import Collection

from django.utils.translation import gettext as _, gettext_lazy, ngettext

from accounts.roles import Permission
from annotation.assignment_facts import (
    LaunchedBatch,
    register_annotator_work,
    register_assignment_ids,
    register_assignment_price,
    register_launched_batches,
)
from annotation.dataset import DatasetTable, register_dataset_count, register_dataset_table
from annotation.models.studies import CountedStudy
from annotation.pages.stages import (
    COLLECT as COLLECT_GROUP,
    PREPARE,
    Facts,
    State,
    StudyStage,
    register_counts,
    register_figures,
    register_panel,
    register_stage,
)
from annotation.study_facts import (
    ANSWER_BY_CROWD,
    CHECK_LAUNCH,
    COLLECT,
    COLLECT_NEW,
    CONNECT,
    DELETE_REHEARSAL,
    LINKS,
    MEASURE,
    PUBLISH,
    RECRUIT,
    REHEARSE,
    REVIEW,
    CollectionFacts,
    register_collection_facts,
)
from console.registrations import ACTIVE, DONE, LATER, NEEDS_YOU, JobAccess, register_job_access
from hits.costs import latest_assignment_price
from hits.jobs import APPLY_CHANGES
from hits.models import Assignment, Batch
from hits.pages.desk import desk_work
from hits.pages.overview import PANELS, collected_figures, money_figures
from hits.progress import list_batches, list_recruitments, progress_counts, progress_in
from hits.studies import marketplace_ids, public_submission_rows
from work.models import Job


def _launch(study: CountedStudy, facts: Facts) -> State:
    progress = progress_in(facts)
    counts = {"n": f"{progress.n_published:,}", "total": f"{progress.n_hits:,}"}
    detail = ngettext("%(n)s of %(total)s HIT", "%(n)s of %(total)s HITs", progress.n_hits) % counts
    if progress.n_hits == 0:
        # Judgments made elsewhere and imported need no HITs.
        return (
            (LATER, "")
            if study.n_judgments or not study.n_items
            else (NEEDS_YOU, _("not launched"))
        )
    if progress.n_items_without_hit:
        without = _("%(n)s to launch") % {"n": f"{progress.n_items_without_hit:,}"}
        return ACTIVE, f"{detail}; {without}"
    return (DONE if progress.n_published == progress.n_hits else ACTIVE), detail


def _answers(study: CountedStudy, facts: Facts) -> State:
    progress = progress_in(facts)
    if progress.n_unreadable:
        return NEEDS_YOU, _("%(n)s unreadable") % {"n": f"{progress.n_unreadable:,}"}
    if progress.n_offered:
        counts = {"n": f"{progress.n_collected:,}", "total": f"{progress.n_offered:,}"}
        is_complete = progress.n_collected >= progress.n_offered
        return (DONE if is_complete else ACTIVE), _("%(n)s of %(total)s") % counts
    if not study.n_judgments:
        return LATER, ""
    return DONE, ngettext("%(n)s judgment", "%(n)s judgments", study.n_judgments) % {
        "n": f"{study.n_judgments:,}"
    }


def _review(study: CountedStudy, facts: Facts) -> State:
    progress = progress_in(facts)
    if n := progress.n_undecided:
        return NEEDS_YOU, ngettext("%(n)s waiting", "%(n)s waiting", n) % {"n": f"{n:,}"}
    return (DONE if progress.n_collected else LATER), ""


register_assignment_ids(marketplace_ids)
register_dataset_table(
    DatasetTable(
        30,
        "submissions",
        "each annotator's pass over an item: times, status, version of the protocol; "
        "rejected ones too",
        public_submission_rows,
    )
)
register_dataset_count(
    "assignments", lambda study: Assignment.objects.filter(hit__batch__study=study).count()
)
register_collection_facts(CollectionFacts(list_batches, list_recruitments))
register_annotator_work(desk_work)
register_counts(progress_counts)
register_figures(10, collected_figures)
register_figures(40, money_figures)
for panel in PANELS:
    register_panel(panel)
for stage in (
    StudyStage("launch", gettext_lazy("Launch"), PREPARE, 30, _launch),
    StudyStage("answers", gettext_lazy("Collect"), COLLECT_GROUP, 40, _answers),
    StudyStage("review", gettext_lazy("Review"), COLLECT_GROUP, 50, _review, Permission.REVIEW),
):
    register_stage(stage)


def _to_read(job: Job) -> Collection[Permission]:
    # What is done at a marketplace tells its cost, and a refusal names assignments and workers.
    # Only a finished collection tells nothing but a count of answers.
    if job.state != Job.State.DONE:
        return {Permission.VIEW_MONEY, Permission.VIEW_WORKERS}
    return set() if job.kind in (COLLECT, COLLECT_NEW, ANSWER_BY_CROWD) else {Permission.VIEW_MONEY}


for kind, page, control in (
    (COLLECT, "answers", Permission.EDIT),
    (COLLECT_NEW, "", Permission.EDIT),
    (PUBLISH, "launch", Permission.SPEND),
    (CHECK_LAUNCH, "launch", Permission.SPEND),
    (CONNECT, "", Permission.EDIT),
    (RECRUIT, "answers", Permission.SPEND),
    (LINKS, "answers", Permission.SPEND),
    (APPLY_CHANGES, "", Permission.SPEND),
    (ANSWER_BY_CROWD, "answers", Permission.SPEND),
    (REVIEW, "review", Permission.REVIEW),
):
    register_job_access(kind, JobAccess(page=page, control=control, to_read=_to_read))
register_job_access(MEASURE, JobAccess(page="review"))
register_job_access(REHEARSE, JobAccess(page="launch"))
register_job_access(DELETE_REHEARSAL, JobAccess(page="launch"))
register_assignment_price(latest_assignment_price)


@register_launched_batches
def _list_launched_batches(studies: Collection[int]) -> list[LaunchedBatch]:
    return [
        LaunchedBatch(*row)
        for row in Batch.objects.filter(study__in=studies)
        .started()
        .order_by("pk")
        .values_list("pk", "study", "round")
    ]
