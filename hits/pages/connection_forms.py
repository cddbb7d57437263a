"""Forms about teams: whose a study is, where a team publishes, what it may spend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import Membership, Team
from accounts.roles import PERMISSIONS, Permission
from accounts.teams import may_create_teams
from console.forms import UsdField
from hits.models import Connection
from work.models import Job

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accounts.models import User

# The notice that says how connecting a recruiter ended.
REFUSED_ID = "connecting-recruiter"
MAY_EDIT = [role for role, permissions in PERMISSIONS.items() if Permission.EDIT in permissions]


class StudyTeamForm(forms.Form):
    """One of a person's teams, or the name of a new one if they may create teams."""

    team = forms.ModelChoiceField(
        Team.objects.none(),
        label=gettext_lazy("Team"),
        required=False,
        empty_label=gettext_lazy("a new team"),
    )
    name = forms.CharField(
        label=gettext_lazy("Name of the new team"), max_length=80, required=False
    )

    def __init__(self, user: User, data: Mapping[str, Any] | None = None) -> None:
        name = _("%(user)s's team") % {"user": user.get_username()}
        super().__init__(data, initial={"name": name}, label_suffix="")
        teams = Membership.objects.filter(user=user, role__in=MAY_EDIT).values("team")
        rows = Team.objects.filter(pk__in=teams)
        self.fields["team"].queryset = rows  # type: ignore[attr-defined]
        self.fields["team"].initial = rows.first()
        if not may_create_teams(user):
            del self.fields["name"]
            self.fields["team"].required = True
            self.fields["team"].empty_label = None  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        if not data.get("team") and not (data.get("name") or "").strip():
            raise ValidationError(_("Choose a team, or name a new one."))
        return data


class BudgetForm(forms.Form):
    """The most that something may cost; empty for no budget."""

    cap_usd = UsdField(label=gettext_lazy("Budget, $"), max_digits=10, required=False)


class ConnectionForm(forms.Form):
    """A marketplace elsewhere, and a key to it."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=40)
    endpoint_url = forms.URLField(
        label=gettext_lazy("Address"),
        assume_scheme="https",
        help_text=gettext_lazy("Such as https://marketplace.example.org/requester"),
    )
    access_key_id = forms.CharField(label=gettext_lazy("Access key"), max_length=128)
    secret_access_key = forms.CharField(
        label=gettext_lazy("Secret key"),
        max_length=256,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("Stored encrypted, and never displayed again."),
    )
    fees = forms.ChoiceField(
        label=gettext_lazy("Fees"),
        choices=Connection.Fees.choices,
        help_text=gettext_lazy("Those of this site are known, whatever is chosen."),
    )


class RecruiterForm(forms.Form):
    """A workspace at Prolific, whose token a marketplace of the team tries and keeps."""

    connection = forms.ModelChoiceField(
        Connection.objects.none(), label=gettext_lazy("Marketplace"), empty_label=None
    )
    name = forms.CharField(label=gettext_lazy("Name"), max_length=100, initial="Prolific")
    token = forms.CharField(
        label=gettext_lazy("API token"),
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "off"}),
        help_text=gettext_lazy("The marketplace keeps it encrypted; it is never displayed again."),
    )
    workspace = forms.RegexField(
        "^[A-Za-z0-9]+$",
        label=gettext_lazy("Workspace"),
        max_length=64,
        help_text=gettext_lazy("Its id, the last part of its address at Prolific."),
    )
    project = forms.RegexField(
        "^[A-Za-z0-9]+$",
        label=gettext_lazy("Project"),
        max_length=64,
        required=False,
        help_text=gettext_lazy("The id of the project for new studies. Empty: the first."),
    )

    def __init__(
        self, team: Team, data: Mapping[str, Any] | None = None, *, last: Job | None = None
    ) -> None:
        """`last` is the last try: where it failed, all but the token is proposed again."""
        super().__init__(data, label_suffix="", auto_id="id_recruiter_%s")
        usable = Connection.objects.of(team).usable()
        self.fields["connection"].queryset = usable  # type: ignore[attr-defined]
        self.fields["connection"].initial = usable.first()
        if (
            data is None
            and last
            and last.state == Job.State.FAILED
            and "ends" not in last.arguments
        ):
            self._propose_again(last)

    def _propose_again(self, last: Job) -> None:
        kept = ("connection", "name", "workspace", "project")
        self.initial.update({name: last.arguments[name] for name in kept})
        if not (field := _refused_field(last)):
            return
        attributes = {
            "aria-invalid": "true",
            "aria-describedby": f"{REFUSED_ID} id_recruiter_{field}_helptext",
        }
        self.fields[field].widget.attrs.update(attributes)


def _refused_field(last: Job) -> str:
    """The field whose value the refusal names; the token itself is in none."""
    named = (one for one in ("workspace", "project") if last.arguments[one])
    named = (one for one in named if last.arguments[one] in last.message)
    return next(named, "token" if "token" in last.message else "")
