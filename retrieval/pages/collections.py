from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Q, Value
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.models import Team, User
from accounts.names import require_visible
from accounts.roles import PERMISSIONS, Permission
from annotation.models import Study
from console.access import may, may_of, person, team_row_for
from console.forms import problems_of
from console.pages.progress import progress_page
from console.registrations import DONE, LATER, NEEDS_YOU, Stage, needed_to_control
from console.tables import page_of
from results.models import Result
from retrieval.collections import (
    DELETE_COLLECTION,
    STUDY_OF_POOL,
    create_collection,
    link_studies,
    remove_collection,
)
from retrieval.derived_files import MAKE_VECTORS, STUDY_QRELS
from retrieval.exceptions import CollectionUnfit
from retrieval.file_readings import subject_of
from retrieval.models import Collection, CollectionFile, ResultType
from retrieval.result_kinds.audit import AUDIT
from retrieval.result_kinds.comparison import COMPARE
from retrieval.result_kinds.evaluation import EVALUATE
from retrieval.result_kinds.machine import COMPARE_MACHINE
from retrieval.result_kinds.pools import MAKE_POOL, SAMPLE_TARGETS
from retrieval.result_kinds.report import WRITE_REPORT
from retrieval.result_kinds.reuse import ESTIMATE_REUSE
from work.models import Job
from work.tasks import resume_job, stop_job

KIND, RESULT = CollectionFile.Kind, ResultType
READ = Q(n_lines__isnull=False, n_faults=0)
USABLE, UNCONFIRMED = READ & Q(is_confirmed=True), READ & Q(is_confirmed=False)


def collection_for(
    request: HttpRequest, slug: str, permission: Permission = Permission.VIEW
) -> Collection:
    return team_row_for(request, Collection.objects.select_related("team"), permission, slug=slug)


def collection_page(
    request: HttpRequest,
    collection: Collection,
    template: str,
    context: dict[str, Any] | None = None,
    *,
    stage: str = "",
    status: int | None = None,
) -> HttpResponse:
    """A page of a collection; without a `status` it is 422 if the context's form was refused."""
    values = context or {}
    form = values.get("form")
    status = status or (422 if form is not None and form.errors else 200)
    beside = {
        "collection": collection,
        "stage": stage or f"collection-{template}",
        "stages": values.get("stages") or list_stages(collection),
        "may": may_of(request),
    }
    return render(request, f"retrieval/{template}.html", beside | values, status=status)


def _counts(collection: Collection) -> Counter[str]:
    """Usable files by kind, faulty ones, and results by kind, in one statement."""
    files = (
        collection.files.order_by()
        .values("kind")
        .annotate(
            n=Count("pk", filter=USABLE),
            n_faulty=Count("pk", filter=Q(n_faults__gt=0)),
            n_unconfirmed=Count("pk", filter=UNCONFIRMED),
        )
    )
    results = (
        Result.objects.filter(collection=collection)
        .order_by()
        .values("kind")
        .annotate(n=Count("pk"), n_faulty=Value(0), n_unconfirmed=Value(0))
    )
    counts: Counter[str] = Counter()
    rows = files.union(results, all=True)
    columns = ("kind", "n", "n_faulty", "n_unconfirmed")
    for kind, n, n_faulty, n_unconfirmed in rows.values_list(*columns):
        counts[kind] += n
        counts["unconfirmed"] += n_unconfirmed
        counts["faulty"] += n_faulty
        counts["faulty_sources"] += n_faulty if kind in (KIND.CATALOGUE, KIND.EMBEDDINGS) else 0
    return counts


@dataclass(frozen=True)
class StagesOfCollection:
    slug: str
    counts: Counter[str]

    def __iter__(self) -> Iterator[Stage]:
        return _stages(self.slug, self.counts)


def list_stages(collection: Collection) -> StagesOfCollection:
    return StagesOfCollection(collection.slug, _counts(collection))


def _stages(slug: str, counts: Counter[str]) -> Iterator[Stage]:
    prepare, answer = _("Prepare"), _("Answer")
    n_runs, n_qrels, n_assessors = (counts[kind] for kind in (KIND.RUN, KIND.QRELS, KIND.ASSESSORS))
    needs_you = counts["faulty"] > counts["faulty_sources"] or counts["unconfirmed"]
    state = NEEDS_YOU if needs_you else DONE if n_runs and n_qrels else LATER
    sizes = _sizes(n_runs, n_qrels, n_assessors)
    yield _stage(slug, "collection-files", _("Runs and qrels"), state, prepare, sizes)
    n_samples, n_pools = counts[RESULT.TARGETS], counts[RESULT.POOL]
    state = DONE if n_samples else LATER
    sizes = (
        ngettext("%(n)d sample", "%(n)d samples", n_samples) % {"n": n_samples} if n_samples else ""
    )
    yield _stage(slug, "collection-targets", _("Targets"), state, prepare, sizes)
    state = NEEDS_YOU if counts["faulty_sources"] else DONE if n_pools else LATER
    sizes = ngettext("%(n)d pool", "%(n)d pools", n_pools) % {"n": n_pools} if n_pools else ""
    yield _stage(slug, "collection-pools", _("Pool"), state, prepare, sizes)
    for name, n_done, title, group in (
        ("collection-judgments", n_qrels, _("Judgments"), prepare),
        ("collection-evaluation", counts[RESULT.EVALUATION], _("Evaluation"), answer),
        ("collection-trust", counts[RESULT.COMPARISON], _("How far to trust it"), answer),
        ("collection-machine", counts[RESULT.MACHINE], _("A machine's labels"), answer),
        ("collection-reuse", counts[RESULT.REUSE], _("Reuse for other systems"), answer),
        ("collection-audit", counts[RESULT.AUDIT], _("Audit of files"), answer),
        ("collection-report", counts[RESULT.REPORT], _("Report"), answer),
    ):
        yield _stage(slug, name, title, DONE if n_done else LATER, group)


def _sizes(n_runs: int, n_qrels: int, n_assessors: int) -> str:
    if not n_runs and not n_qrels and not n_assessors:
        return ""
    runs = ngettext("%(n)d run", "%(n)d runs", n_runs) % {"n": n_runs}
    if n_assessors and not n_qrels:
        return _("{runs}, grades to be merged").format(runs=runs)
    return _("{runs}, {n} qrels").format(runs=runs, n=n_qrels)


def _stage(slug: str, name: str, title: str, state: str, group: str, detail: str = "") -> Stage:
    return Stage(name, title, reverse(f"console:{name}", args=[slug]), state, detail, group)


def next_step(stages: StagesOfCollection, *, n_studies: int) -> dict[str, str]:
    """The first step that is due: what to do, the button's label, and its page."""
    steps = (step for is_due, *step in _steps(stages.counts, n_studies) if is_due)
    text, button, page = next(steps)
    return {"text": text, "button": button, "url": reverse(f"console:{page}", args=[stages.slug])}


def _steps(counts: Counter[str], n_studies: int) -> Iterator[tuple[object, str, str, str]]:
    """Each step with whether it is due, in their order; the last one always is."""
    files, pools = "collection-files", "collection-pools"
    n_runs, n_qrels, n_assessors = (counts[kind] for kind in (KIND.RUN, KIND.QRELS, KIND.ASSESSORS))
    n_faulty, n_unconfirmed = counts["faulty"], counts["unconfirmed"]
    has_files = n_runs or n_qrels or n_assessors or counts[KIND.EMBEDDINGS]
    yield (
        n_faulty,
        ngettext(
            "{n} file cannot be used: see what is wrong with it.",
            "{n} files cannot be used: see what is wrong with them.",
            n_faulty,
        ).format(n=f"{n_faulty:,}"),
        _("See the faults"),
        pools if counts["faulty_sources"] == n_faulty else files,
    )
    yield (
        n_unconfirmed,
        ngettext(
            "{n} file is used once you confirm which of its rows are left out.",
            "{n} files are used once you confirm which of their rows are left out.",
            n_unconfirmed,
        ).format(n=f"{n_unconfirmed:,}"),
        _("Look at them"),
        files,
    )
    yield from (
        (
            not has_files,
            _("Add the runs of your systems, and qrels if there are any."),
            _("Add files"),
            files,
        ),
        (
            n_assessors and not n_qrels,
            _(
                "Make qrels of the assessors' grades by a rule: runs are evaluated under one grade "
                "of each document."
            ),
            _("Make qrels"),
            files,
        ),
        (
            not n_qrels and not n_studies and not counts[RESULT.POOL],
            _(
                "Make a pool: which documents of each target are judged. Where there are qrels "
                "already, add them instead."
            ),
            _("Make a pool"),
            pools,
        ),
        (
            not n_qrels and not n_studies,
            _("Make a study of the pool, in which people judge its candidates."),
            _("See the pool"),
            pools,
        ),
        (
            not n_qrels,
            _("Have the study judged, and make qrels of its answers."),
            _("Judgments"),
            "collection-judgments",
        ),
        (
            not n_runs,
            _("Add the runs of the systems that are to be evaluated."),
            _("Add runs"),
            files,
        ),
        (
            not counts[RESULT.EVALUATION],
            _("Evaluate the runs."),
            _("Evaluate"),
            "collection-evaluation",
        ),
        (
            not counts[RESULT.COMPARISON]
            and n_runs > 1
            and (n_qrels > 1 or counts[KIND.ASSESSORS]),
            _("See whether other judgments would order the runs otherwise."),
            _("How far to trust it"),
            "collection-trust",
        ),
        (
            not counts[RESULT.REUSE] and n_runs > 1 and n_qrels,
            _("Estimate what a system that was not pooled must expect."),
            _("Reuse for other systems"),
            "collection-reuse",
        ),
        (
            not counts[RESULT.REPORT],
            _("Write the report, which says what may be concluded."),
            _("Write the report"),
            "collection-report",
        ),
        (True, _("All is computed: read the report."), _("Report"), "collection-report"),
    )


# The page that shows a job; others are on the page of files.
PAGES = {
    EVALUATE: "collection-evaluation",
    **dict.fromkeys((MAKE_POOL, STUDY_OF_POOL, MAKE_VECTORS), "collection-pools"),
    SAMPLE_TARGETS: "collection-targets",
    WRITE_REPORT: "collection-report",
    STUDY_QRELS: "collection-judgments",
    COMPARE: "collection-trust",
    COMPARE_MACHINE: "collection-machine",
    ESTIMATE_REUSE: "collection-reuse",
    AUDIT: "collection-audit",
    DELETE_COLLECTION: "collection-delete",
}


@require_safe
@never_cache
def job(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind. Polled by the page; reloads it at
    the end."""
    try:
        collection = collection_for(request, slug)
    except Http404:
        if not request.headers.get("HX-Request"):
            raise
        # The job deleted it, and the page that follows the job goes on to the others; so it does
        # where the collection is somebody else's, or the answer would say that there is one.
        return HttpResponse(headers={"HX-Redirect": reverse("console:collections")})
    row = get_object_or_404(Job.objects.about(subject_of(collection)), pk=job_id)
    context = {"job": row, "collection": collection, "may": may_of(request)}
    return progress_page(request, "retrieval/_job.html", context, is_over=not row.is_unfinished)


def controlled_job(
    request: HttpRequest, slug: str, job_id: int, *, resumes: bool = False
) -> tuple[Collection, Job]:
    collection = collection_for(request, slug)
    row = get_object_or_404(Job.objects.about(subject_of(collection)), pk=job_id)
    for permission in needed_to_control(row, resumes=resumes):
        collection = collection_for(request, slug, permission)
    return collection, row


@require_POST
def stop(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """Access: those who may request such a job."""
    _collection, row = controlled_job(request, slug, job_id)
    stop_job(job=row)
    return redirect(f"console:{PAGES.get(row.kind, 'collection-files')}", slug)


@require_POST
def resume(request: HttpRequest, slug: str, job_id: int) -> HttpResponse:
    """Access: those who may request such a job."""
    _collection, row = controlled_job(request, slug, job_id, resumes=True)
    resume_job(job=row)
    return redirect(f"console:{PAGES.get(row.kind, 'collection-files')}", slug)


@require_safe
def collections(request: HttpRequest) -> HttpResponse:
    """Access: signed in; lists the collections of one's teams, but for who adjudicates blind."""
    rows = (
        Collection.objects.visible_to(person(request))
        .select_related("team")
        .with_n_files()
        .order_by("name", "pk")
    )
    return render(request, "retrieval/list.html", {"page": page_of(request, rows)})


@require_http_methods(["GET", "HEAD", "POST"])
def new_collection(request: HttpRequest) -> HttpResponse:
    """Access: signed in; for a team, those who may edit its studies."""
    user = person(request)
    form = CollectionForm(user, request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        collection = create_collection(name=data["name"], team=data["team"], actor=user)
        messages.success(request, _("“{name}” is made.").format(name=collection.name))
        return redirect("console:collection-files", collection.slug)
    return render(request, "retrieval/new.html", {"form": form}, status=422 if form.errors else 200)


@require_safe
def collection(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team, but for who adjudicates blind."""
    row = collection_for(request, slug)
    studies = list(row.studies.order_by("title"))
    form = None
    if may(request, Permission.EDIT):
        form = StudiesForm(row, initial={"studies": [study.pk for study in studies]})
    stages = list_stages(row)
    step = next_step(stages, n_studies=len(studies))
    context = {"studies": studies, "form": form, "stages": stages, "step": step}
    return collection_page(request, row, "overview", context, stage="collection")


@require_POST
def set_studies(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit."""
    row = collection_for(request, slug, Permission.EDIT)
    form = StudiesForm(row, request.POST)
    if form.is_valid():
        link_studies(collection=row, studies=form.cleaned_data["studies"], actor=person(request))
        messages.success(request, _("The collection's studies were saved."))
    else:
        messages.error(request, problems_of(form))
    return redirect("console:collection", slug)


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    """First what goes with it, then doing it, once its short name was typed.

    Access: owners of the team.
    """
    row = collection_for(request, slug, Permission.OWN)
    problem = ""
    if request.method == "POST":
        if request.POST.get("name", "").strip() == row.slug:
            try:
                return _delete(request, row)
            except CollectionUnfit as refused:
                problem = str(refused)
        else:
            problem = _("Nothing was deleted: type {name} to confirm.").format(name=row.slug)
    job = Job.objects.about(subject_of(row)).of_kind(DELETE_COLLECTION).first()
    context = {"n_files": row.files.count(), "problem": problem, "job": job}
    return collection_page(request, row, "delete", context, status=422 if problem else 200)


def _delete(request: HttpRequest, collection: Collection) -> HttpResponse:
    job = remove_collection(collection=collection, actor=person(request))
    if job is None or not Collection.objects.filter(pk=job.arguments["collection"]).exists():
        messages.success(request, _("“{title}” is deleted.").format(title=collection.name))
        return redirect("console:collections")
    return redirect("console:collection-delete", collection.slug)


def teams_that_may_hold_collections(user: User) -> Any:
    roles = [role for role, permissions in PERMISSIONS.items() if Permission.EDIT in permissions]
    return Team.objects.filter(memberships__user=user.pk, memberships__role__in=roles).order_by(
        "name"
    )


class CollectionForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name of the collection"), max_length=128, validators=[require_visible]
    )
    team = forms.ModelChoiceField(
        label=gettext_lazy("Team"),
        queryset=Team.objects.none(),
        empty_label=None,
        help_text=gettext_lazy("Its members see the collection, by their roles."),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        self.teams = self.fields["team"].queryset = teams_that_may_hold_collections(user)  # type: ignore[attr-defined]

    @property
    def has_teams(self) -> bool:
        return bool(self.teams.exists())


class StudiesForm(forms.Form):
    studies = forms.ModelMultipleChoiceField(
        label=gettext_lazy("Studies whose judgments make its qrels"),
        queryset=Study.objects.none(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, collection: Collection, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        studies = Study.objects.filter(team=collection.team_id).order_by("title", "pk")
        self.fields["studies"].queryset = studies  # type: ignore[attr-defined]
