"""Background work on a page: how far it is, stopping it, and asking for it again."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from annotation.models import Study
from console import asking
from console.agreement_parts import Content
from console.models import Work
from console.pages.study import person, shown_study
from console.results import fingerprint, stored

PAGES = {
    Work.Kind.COLLECT: "answers",
    Work.Kind.SCORE: "validation",
    Work.Kind.LABEL: "labels",
}


def result_or_work(
    request: HttpRequest, study: Study, name: str
) -> tuple[Content | None, Work | None]:
    """The result of that name; where it is not there yet, None and the work that makes it.

    Work that failed on what there is now is shown, and not asked for again by itself.
    """
    basis = fingerprint(study)
    if (found := stored(study, name, basis)) is not None:
        return found, None
    works = Work.objects.of(study).of_kind(Work.Kind.RESULT)
    last = works.filter(names=[name], basis=basis).first()
    if last and not last.is_unfinished:
        return None, last
    kind = Work.Kind.RESULT
    work = asking.ask(study=study, kind=kind, names=[name], asked_by=person(request), basis=basis)
    found = stored(study, name, basis)
    return (found, None) if found is not None else (None, work)


def _page_of(work: Work) -> str:
    """The address of the page that tells of the work."""
    name = PAGES.get(Work.Kind(work.kind)) or work.names[0]
    return reverse(f"console:{name}", args=[work.study.slug])


def _shown_work(request: HttpRequest, slug: str, work_id: int) -> Work:
    works = Work.objects.of(shown_study(request, slug)).select_related("study")
    return get_object_or_404(works, pk=work_id)


@require_safe
@never_cache
def work(request: HttpRequest, slug: str, work_id: int) -> HttpResponse:
    """Access: the study's owner, or a superuser. Polled by the page; reloads it at the end."""
    shown = _shown_work(request, slug, work_id)
    if not shown.is_unfinished and request.headers.get("HX-Request"):
        return HttpResponse(headers={"HX-Refresh": "true"})
    return render(request, "console/_work.html", {"work": shown})


@require_POST
def stop(request: HttpRequest, slug: str, work_id: int) -> HttpResponse:
    """Access: the study's owner, or a superuser."""
    shown = _shown_work(request, slug, work_id)
    asking.stop(work=shown)
    return redirect(_page_of(shown))


@require_POST
def again(request: HttpRequest, slug: str, work_id: int) -> HttpResponse:
    """Access: the study's owner, or a superuser."""
    shown = _shown_work(request, slug, work_id)
    asking.ask_again(work=shown, asked_by=person(request))
    return redirect(_page_of(shown))
