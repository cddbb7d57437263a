from io import TextIOWrapper
from typing import Any

from django import forms
from django.contrib.auth.forms import UserCreationForm
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils.text import format_lazy
from django.utils.translation import gettext as _, gettext_lazy

from marketplace.exceptions import InvalidStatusFile, MarketplaceError, require
from marketplace.models import HitType, RecruitedStudy, RecruiterConnection, Requester
from marketplace.people.enrolment import check_name, enrol_requester
from marketplace.recruiting.files import Row, read_statuses
from marketplace.recruiting.studies import (
    IDS,
    MOST_INVITATIONS,
    MOST_ITEMS,
    PLACEHOLDERS,
    StudyValues,
    address_error,
    repeated_parameter,
)
from marketplace.users import User

# About 2,000 participations: what a request can take over in its time.
LARGEST_FILE = 256 * 1024
Kind = RecruiterConnection.Kind


class RequesterSignUpForm(UserCreationForm[User]):
    requester_name = forms.CharField(
        max_length=150,
        label=gettext_lazy("Requester's name"),
        help_text=gettext_lazy("As workers see it, such as the name of your lab."),
    )

    class Meta:
        model = User
        fields = ("username",)
        labels = {"username": gettext_lazy("Name or e-mail address to sign in with")}
        help_texts = {"username": ""}

    def clean_requester_name(self) -> str:
        name: str = self.cleaned_data["requester_name"].strip()
        require(
            not Requester.objects.filter(name__iexact=name).exists(),
            forms.ValidationError(
                _("There is a requester of this name already."), code="name_taken"
            ),
        )
        try:
            check_name(name)
        except MarketplaceError as error:
            raise forms.ValidationError(str(error), code=error.code) from error
        return name

    @transaction.atomic
    def enrol(self) -> Requester:
        return enrol_requester(user=self.save(), name=self.cleaned_data["requester_name"])


class KeyForm(forms.Form):
    label = forms.CharField(
        max_length=100,
        required=False,
        label=gettext_lazy("What the new key is for"),
        help_text=gettext_lazy("For your own use."),
    )


class StudyForm(forms.ModelForm[RecruitedStudy]):
    prefix = "channel"
    kind = forms.ChoiceField(
        choices=[(kind.value, kind.label) for kind in (Kind.OWN_LAB, Kind.LINK_PANEL)],
        label=gettext_lazy("Kind"),
    )
    panel = forms.CharField(
        max_length=100,
        required=False,
        label=gettext_lazy("Panel's name"),
        help_text=gettext_lazy("Participants are known again by this name and their id."),
    )
    items_per_session = forms.IntegerField(
        min_value=1,
        max_value=MOST_ITEMS,
        initial=1,
        label=gettext_lazy("HITs for each participant"),
        help_text=gettext_lazy(
            "They are reserved at arrival; the code appears when all are submitted."
        ),
    )
    maximum_minutes = forms.IntegerField(
        min_value=1,
        max_value=24 * 60,
        required=False,
        label=gettext_lazy("Minutes for all of them"),
        help_text=gettext_lazy("Empty: the time allotted for a HIT, for each of them."),
    )
    completion_code = forms.CharField(
        max_length=64,
        required=False,
        label=gettext_lazy("Completion code"),
        help_text=gettext_lazy("Empty: a random one. Other outcomes have random codes."),
    )

    redirect_url = forms.CharField(
        max_length=1000,
        required=False,
        widget=forms.URLInput(),
        label=gettext_lazy("Address to go back to"),
        help_text=format_lazy(
            gettext_lazy("Optional. May hold {placeholders}."),
            placeholders=", ".join(PLACEHOLDERS),
        ),
    )
    is_for_completed = forms.BooleanField(
        required=False,
        label=gettext_lazy("Only those who have finished go back to it; others are shown a code"),
    )

    class Meta:
        model = RecruitedStudy
        fields = (
            "name",
            "hit_type",
            "worker_parameter",
            "study_parameter",
            "session_parameter",
            "discards_returned",
        )
        labels = {
            "name": gettext_lazy("Name, for your own use"),
            "worker_parameter": gettext_lazy("URL parameter with the participant's id"),
            "study_parameter": gettext_lazy("URL parameter with the study's id"),
            "session_parameter": gettext_lazy("URL parameter with the session's id"),
            "discards_returned": gettext_lazy("Delete the answers of who returns the study"),
        }

    field_order = (
        "name",
        "hit_type",
        "kind",
        "items_per_session",
        "maximum_minutes",
        "panel",
        "worker_parameter",
        "study_parameter",
        "session_parameter",
        "completion_code",
        "redirect_url",
        "is_for_completed",
        "discards_returned",
    )

    def __init__(self, *args: Any, requester: Requester, is_owner: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.is_owner = is_owner
        self.fields["hit_type"] = forms.ModelChoiceField(
            HitType.objects.filter(requester=requester).order_by("-pk"),
            label=_("Leads to"),
            help_text=_("From now on nothing is held or paid here for it."),
        )
        self.order_fields(self.field_order)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("kind") == Kind.LINK_PANEL:
            for name in ("panel", "worker_parameter"):
                if not cleaned.get(name):
                    text = _("A panel needs this.")
                    self.add_error(name, forms.ValidationError(text, code="required"))
            names = (f"{one}_parameter" for one in ("worker", "study", "session"))
            if error := repeated_parameter(*(cleaned.get(name) or "" for name in names)):
                self.add_error(
                    "worker_parameter", forms.ValidationError(error, code="repeated_parameter")
                )
        if error := address_error(cleaned.get("redirect_url", "")):
            self.add_error("redirect_url", forms.ValidationError(error, code="invalid_address"))
        elif not self.is_owner and any(name in cleaned.get("redirect_url", "") for name in IDS):
            text = _("Only an owner may have participants' ids sent on: leave out %(names)s.")
            text %= {"names": ", ".join(IDS)}
            self.add_error("redirect_url", forms.ValidationError(text, code="owners_only"))
        return cleaned

    def values(self) -> StudyValues:
        cleaned = dict(self.cleaned_data)
        del cleaned["hit_type"]
        minutes = cleaned.pop("maximum_minutes")
        return StudyValues(**cleaned, maximum_seconds=minutes * 60 if minutes else None)


class MoreTimeForm(forms.ModelForm[Requester]):
    more_time_percent = forms.IntegerField(
        min_value=0,
        max_value=100,
        label=gettext_lazy("More time, in percent of the time allotted"),
        help_text=gettext_lazy("A worker may ask for it once an assignment; 0 gives none."),
    )

    class Meta:
        model = Requester
        fields = ("more_time_percent",)


class WaysBackForm(forms.Form):
    prefix = "back"

    def __init__(self, *args: Any, study: RecruitedStudy, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for code in study.codes.order_by("pk"):
            self.fields[code.outcome] = forms.CharField(
                max_length=1000,
                required=False,
                label=code.get_outcome_display(),
                initial=code.redirect_url,
                widget=forms.URLInput(),
            )

    def clean(self) -> dict[str, str]:
        cleaned: dict[str, str] = super().clean() or self.cleaned_data
        for outcome, address in list(cleaned.items()):
            if error := address_error(address):
                self.add_error(outcome, forms.ValidationError(error, code="invalid_address"))
        return cleaned


class StatusesForm(forms.Form):
    prefix = "statuses"
    file = forms.FileField(
        label=gettext_lazy("CSV file"),
        help_text=gettext_lazy(
            "Columns: submission_id or participant_id, status (approved, rejected, returned, "
            "timed out, screened out, no consent), and reason if you like."
        ),
        widget=forms.FileInput(attrs={"accept": ".csv,text/csv"}),
    )

    def __init__(self, *args: Any, study: RecruitedStudy, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.study = study
        self.rows: list[Row] = []

    def clean_file(self) -> "UploadedFile[bytes]":
        file: UploadedFile[bytes] = self.cleaned_data["file"]
        if file.size is None or file.size > LARGEST_FILE:
            raise forms.ValidationError(
                _("The file is too large for this page: use import_participant_statuses.")
            )
        text = TextIOWrapper(file, encoding="utf-8-sig", newline="")
        try:
            self.rows = read_statuses(self.study, text, name=file.name or "CSV")
        except InvalidStatusFile as error:
            raise forms.ValidationError(str(error).splitlines()) from error
        return file


class InviteForm(forms.Form):
    labels = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4}),
        label=gettext_lazy("Participants, one to a line"),
        help_text=gettext_lazy("Numbers or aliases for your own use; workers don't see them."),
    )

    def clean_labels(self) -> list[str]:
        labels = [line.strip()[:100] for line in self.cleaned_data["labels"].splitlines()]
        labels = [line for line in labels if line]
        require(
            1 <= len(labels) <= MOST_INVITATIONS,
            forms.ValidationError(_("From 1 to %(n)s lines.") % {"n": MOST_INVITATIONS}),
        )
        return labels
