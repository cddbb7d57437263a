from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.forms import UserCreationForm
from django.db import transaction
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from marketplace.exceptions import MarketplaceError
from marketplace.models import Channel, HitType, Requester
from marketplace.people.enrolment import check_name, enrol_requester
from marketplace.recruiting.arrivals import is_address
from marketplace.recruiting.channels import MOST_INVITATIONS, PLACEHOLDERS, ChannelValues
from marketplace.users import User


class RequesterSignUpForm(UserCreationForm[User]):
    """A user of one's own, and the name workers see."""

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
        """Refuse a name that would be taken for another's."""
        name: str = self.cleaned_data["requester_name"].strip()
        if Requester.objects.filter(name__iexact=name).exists():
            raise forms.ValidationError(_("There is a requester of this name already."))
        try:
            check_name(name)
        except MarketplaceError as error:
            raise forms.ValidationError(str(error)) from error
        return name

    @transaction.atomic
    def enrol(self) -> Requester:
        """The new requester, with the new user in its name."""
        return enrol_requester(user=self.save(), name=self.cleaned_data["requester_name"])


class KeyForm(forms.Form):
    """What a new key is for."""

    label = forms.CharField(
        max_length=100,
        required=False,
        label=gettext_lazy("What the new key is for"),
        help_text=gettext_lazy("For your own use."),
    )


class ChannelForm(forms.ModelForm[Channel]):
    """A channel to one of the requester's HIT types."""

    prefix = "channel"

    class Meta:
        model = Channel
        fields = (
            "name",
            "hit_type",
            "kind",
            "panel",
            "worker_parameter",
            "study_parameter",
            "session_parameter",
            "completion_code",
            "redirect_url",
        )
        labels = {
            "name": gettext_lazy("Name, for your own use"),
            "hit_type": gettext_lazy("Leads to"),
            "kind": gettext_lazy("Kind"),
            "completion_code": gettext_lazy("Completion code"),
            "panel": gettext_lazy("Panel's name"),
            "worker_parameter": gettext_lazy("URL parameter with the participant's id"),
            "study_parameter": gettext_lazy("URL parameter with the study's id"),
            "session_parameter": gettext_lazy("URL parameter with the session's id"),
            "redirect_url": gettext_lazy("Address to go back to"),
        }
        help_texts = {
            "panel": gettext_lazy("Participants are known again by this name and their id."),
            "completion_code": gettext_lazy("Shown to a participant who has finished."),
            "redirect_url": format_lazy(
                gettext_lazy("Optional. May hold {placeholders}."),
                placeholders=", ".join(PLACEHOLDERS),
            ),
        }

    def __init__(self, *args: Any, requester: Requester, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        mine = HitType.objects.filter(requester=requester).order_by("-pk")
        self.fields["hit_type"] = forms.ModelChoiceField(mine, label=_("Leads to"))
        self.fields["redirect_url"].widget = forms.URLInput()

    def clean(self) -> dict[str, Any]:
        """A panel names its participants; the way back is a full address."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("kind") == Channel.Kind.PANEL:
            for name in ("panel", "worker_parameter"):
                if not cleaned.get(name):
                    self.add_error(name, _("A panel needs this."))
        address = cleaned.get("redirect_url")
        if address and not is_address(address, allow_http=not settings.HTTPS):
            self.add_error(
                "redirect_url", _("A full https address, whose host is not a placeholder.")
            )
        return cleaned

    def values(self) -> ChannelValues:
        """What was entered, of a valid form."""
        cleaned = self.cleaned_data
        return ChannelValues(**{name: cleaned[name] for name in ChannelValues.__annotations__})


class MoreTimeForm(forms.ModelForm[Requester]):
    """How much a worker may add to the time allotted, once an assignment."""

    more_time_percent = forms.IntegerField(
        min_value=0,
        max_value=100,
        label=gettext_lazy("More time, in percent of the time allotted"),
        help_text=gettext_lazy("A worker may ask for it once an assignment; 0 gives none."),
    )

    class Meta:
        model = Requester
        fields = ("more_time_percent",)


class InviteForm(forms.Form):
    """Participants who get a link of their own, one to a line."""

    labels = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4}),
        label=gettext_lazy("Participants, one to a line"),
        help_text=gettext_lazy("Numbers or aliases for your own use; workers don't see them."),
    )

    def clean_labels(self) -> list[str]:
        """The lines with something on them."""
        labels = [line.strip()[:100] for line in self.cleaned_data["labels"].splitlines()]
        labels = [line for line in labels if line]
        if not 1 <= len(labels) <= MOST_INVITATIONS:
            raise forms.ValidationError(_("From 1 to %(n)s lines.") % {"n": MOST_INVITATIONS})
        return labels
