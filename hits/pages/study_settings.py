"""A study's name, and its end."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods

from accounts.names import require_visible
from accounts.roles import Permission
from annotation.models import Study
from annotation.new_studies import rename_study
from annotation.pages.study import (
    study_for,
    study_page,
)
from console.access import person
from hits.deletion import (
    contents_of,
    obstacles_to_deletion,
    remove_study,
)
from hits.exceptions import StudyUnfinished

CONTENTS = {
    "items": gettext_lazy("Items"),
    "candidates": gettext_lazy("Candidates"),
    "submissions": gettext_lazy("Submissions"),
    "judgments": gettext_lazy("Judgments"),
    "label_sets": gettext_lazy("Label sets"),
    "scores": gettext_lazy("Metrics' scores"),
    "hits": gettext_lazy("HITs"),
    "assignments": gettext_lazy("Assignments"),
}


class NameForm(forms.ModelForm[Study]):
    """What a study is called; its short name, which addresses and files have, stays."""

    class Meta:
        model = Study
        fields = ["title"]
        labels = {"title": gettext_lazy("Name of the study")}

    def clean_title(self) -> str:
        """Refuse what is not seen."""
        title: str = self.cleaned_data["title"]
        require_visible(title)
        return title


@require_http_methods(["GET", "HEAD", "POST"])
def rename(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: those who may edit the study."""
    study = study_for(request, slug, Permission.EDIT)
    row = Study.objects.get(pk=study.pk)
    form = NameForm(request.POST or None, instance=row, label_suffix="")
    if request.method == "POST" and form.is_valid():
        title = form.cleaned_data["title"]
        rename_study(study=study, title=title, actor=person(request))
        text = _("The study is called “{title}”.").format(title=title)
        messages.success(request, text, extra_tags="renamed")
        return redirect("console:study", slug)
    return study_page(request, study, "hits/rename", {"form": form})


@require_http_methods(["GET", "HEAD", "POST"])
def delete(request: HttpRequest, slug: str) -> HttpResponse:
    """First what goes with it, then doing it, once its short name was typed.

    Access: those who own the study.
    """
    study = study_for(request, slug, Permission.OWN)
    problem = ""
    if request.method == "POST":
        if request.POST.get("name", "").strip() != study.slug:
            problem = _("Nothing was deleted: type {name} to confirm.").format(name=study.slug)
        elif not obstacles_to_deletion(study):
            return _delete(request, study)
    context = {
        "contents": [(CONTENTS[name], n) for name, n in contents_of(study).items()],
        "reasons": obstacles_to_deletion(study),
        "problem": problem,
    }
    return study_page(request, study, "hits/delete", context)


def _delete(request: HttpRequest, study: Study) -> HttpResponse:
    try:
        job = remove_study(study=study, actor=person(request))
    except StudyUnfinished as refused:
        text = _("It was not deleted. {why}").format(why=refused)
        messages.error(request, text, extra_tags=refused.code)
        return redirect("console:delete", study.slug)
    text = _("“{title}” is being deleted in the background.") if job else _("“{title}” is deleted.")
    code = "deleting" if job else "deleted"
    messages.success(request, text.format(title=study.title), extra_tags=code)
    return redirect("console:studies")
