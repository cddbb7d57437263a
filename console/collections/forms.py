"""What the pages of collections ask for."""

from __future__ import annotations

from typing import Any

from django import forms
from django.conf import settings
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from accounts.models import Team, User
from accounts.names import require_visible
from accounts.roles import PERMISSIONS, Permission
from annotation.models import Study
from console.collections.judgments_view import merging_rule_choices
from retrieval.collection_files import DESCRIPTIONS
from retrieval.models import Collection, CollectionFile
from retrieval.models.files import NAME_LENGTH

JUDGES = [
    (CollectionFile.MadeBy.UNKNOWN, _("not stated")),
    (CollectionFile.MadeBy.PEOPLE, _("people")),
    (CollectionFile.MadeBy.MACHINE, _("a machine")),
    (CollectionFile.MadeBy.SIMULATED, _("simulated workers")),
]
OF_RUNS, OF_QRELS = ("family",), ("made_by", "assessor", "round", "rule")
KINDS = CollectionFile.Kind
NOT_OF = {
    KINDS.RUN: OF_QRELS,
    KINDS.ASSESSORS: (*OF_RUNS, "made_by", "assessor", "rule"),
    **dict.fromkeys((KINDS.CATALOGUE, KINDS.EMBEDDINGS), (*OF_RUNS, *OF_QRELS)),
}


def teams_that_may_hold_collections(user: User) -> Any:
    """The teams in which a user may make collections."""
    roles = [role for role, permissions in PERMISSIONS.items() if Permission.EDIT in permissions]
    rows = Team.objects.filter(memberships__user=user.pk, memberships__role__in=roles)
    return rows.order_by("name")


class CollectionForm(forms.Form):
    """What a collection is called, and whose it is."""

    name = forms.CharField(
        label=_("Name of the collection"), max_length=128, validators=[require_visible]
    )
    team = forms.ModelChoiceField(
        label=_("Team"),
        queryset=Team.objects.none(),
        empty_label=None,
        help_text=_("Its members see the collection, by their roles."),
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        teams = self.fields["team"]
        assert isinstance(teams, forms.ModelChoiceField)
        teams.queryset = teams_that_may_hold_collections(user)

    @property
    def has_teams(self) -> bool:
        """Whether there is a team to make a collection in."""
        teams = self.fields["team"]
        assert isinstance(teams, forms.ModelChoiceField)
        return bool(teams.queryset is not None and teams.queryset.exists())


class StudiesForm(forms.Form):
    """The studies whose judgments make a collection's qrels."""

    studies = forms.ModelMultipleChoiceField(
        label=_("Studies whose judgments make its qrels"),
        queryset=Study.objects.none(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, collection: Collection, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        studies = self.fields["studies"]
        assert isinstance(studies, forms.ModelMultipleChoiceField)
        studies.queryset = Study.objects.filter(team=collection.team_id).order_by("title", "pk")


class SeveralFilesInput(forms.ClearableFileInput):
    allow_multiple_selected = True


class SeveralFilesField(forms.FileField):
    """One file or several; each is looked at as one would be."""

    widget = SeveralFilesInput

    def clean(self, data: Any, initial: Any = None) -> Any:
        files = (data if isinstance(data, list | tuple) else [data]) or [None]
        if not self.required:
            files = [file for file in files if file]
        return [super(SeveralFilesField, self).clean(file, initial) for file in files]


class FilesForm(forms.Form):
    """Runs and qrels to add."""

    uploads = SeveralFilesField(
        label=_("Files"),
        help_text=format_lazy(
            _(
                "Runs (topic Q0 docno rank score tag) and qrels (topic iteration docno grade), "
                "plain or compressed with gzip; up to {n} at once. Where two assessors graded a "
                "document, column 2 names them."
            ),
            n=settings.DATA_UPLOAD_MAX_NUMBER_FILES,
        ),
        allow_empty_file=True,
    )
    kind = forms.ChoiceField(
        label=_("What they are"),
        required=False,
        choices=[
            ("", _("find out from their columns")),
            (CollectionFile.Kind.RUN, _("runs")),
            (CollectionFile.Kind.QRELS, _("qrels")),
            (CollectionFile.Kind.ASSESSORS, _("qrels of several assessors, named in column 2")),
        ],
    )
    made_by = forms.ChoiceField(
        label=_("Who judged the qrels"),
        required=False,
        choices=JUDGES,
        initial=CollectionFile.MadeBy.UNKNOWN,
        help_text=_("Qrels of a study with simulated answers are marked, and recognized."),
    )
    family = forms.CharField(
        label=_("Family of the runs (optional)"),
        required=False,
        max_length=NAME_LENGTH,
        help_text=_("Runs that share a model; they are left out together when reuse is estimated."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)


class DescriptionForm(forms.ModelForm[CollectionFile]):
    """What a file is called, a run's family, and who judged qrels, when and by which rule."""

    class Meta:
        model = CollectionFile
        fields = list(DESCRIPTIONS)
        labels = {
            "name": _("Name"),
            "family": _("Family"),
            "made_by": _("Judged by"),
            "assessor": _("Assessor"),
            "round": _("Round"),
            "rule": _("Rule"),
        }
        help_texts = {
            "name": _("As tables and charts call it."),
            "family": _("Runs that share a model; they are left out together."),
            "made_by": _("Labels of a machine are never mixed with people's."),
            "assessor": "",
            "round": "",
            "rule": _("How several judgments became one grade, such as majority."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": ""} | kwargs)
        for name in NOT_OF.get(CollectionFile.Kind(self.instance.kind), OF_RUNS):
            del self.fields[name]
        if "made_by" in self.fields:
            made_by = self.fields["made_by"]
            assert isinstance(made_by, forms.ChoiceField)
            made_by.choices = JUDGES


class MergingForm(forms.Form):
    """By which rule several assessors' grades become qrels."""

    rule = forms.ChoiceField()

    def __init__(self, data: Any) -> None:
        super().__init__(data)
        rule = self.fields["rule"]
        assert isinstance(rule, forms.ChoiceField)
        rule.choices = merging_rule_choices()
