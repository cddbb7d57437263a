from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _, gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.models import Membership, Team, User
from accounts.roles import PERMISSIONS, Permission
from accounts.teams import may_connect_this_site, may_create_teams
from console.access import person, team_for
from console.forms import UsdField, problems_of
from console.pages.progress import progress_page
from hits.account_requests import (
    TEST_FUNDS_USD,
    connection_jobs,
    recruiter_jobs,
    request_connection,
    request_end,
    request_recruiter,
    request_this_site,
)
from hits.connections import close_connection
from hits.costs import charges_of, set_budget
from hits.endpoints import AccessKey
from hits.exceptions import HitsError, require
from hits.models import Budget, Connection, Recruiter
from work.models import Job

# The notice that says how connecting a recruiter ended.
REFUSED_ID = "connecting-recruiter"
MAY_EDIT = [role for role, permissions in PERMISSIONS.items() if Permission.EDIT in permissions]


class StudyTeamForm(forms.Form):
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
        super().__init__(
            data,
            initial={"name": (_("%(user)s's team") % {"user": user.get_username()})},
            label_suffix="",
        )
        rows = Team.objects.filter(
            pk__in=Membership.objects.filter(user=user, role__in=MAY_EDIT).values("team")
        )
        self.fields["team"].queryset = rows  # type: ignore[attr-defined]
        self.fields["team"].initial = rows.first()
        if not may_create_teams(user):
            del self.fields["name"]
            self.fields["team"].required = True
            self.fields["team"].empty_label = None  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data = self.cleaned_data
        require(
            data.get("team") or (data.get("name") or "").strip(),
            ValidationError(_("Choose a team, or name a new one.")),
        )
        return data


class BudgetForm(forms.Form):
    cap_usd = UsdField(label=gettext_lazy("Budget, $"), max_digits=10, required=False)


class ConnectionForm(forms.Form):
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
        self.initial.update(
            {name: last.arguments[name] for name in ("connection", "name", "workspace", "project")}
        )
        if not (field := _refused_field(last)):
            return
        self.fields[field].widget.attrs.update(
            {
                "aria-invalid": "true",
                "aria-describedby": f"{REFUSED_ID} id_recruiter_{field}_helptext",
            }
        )


def _refused_field(last: Job) -> str:
    values = {one: last.arguments[one] for one in ("workspace", "project")}
    named = (one for one, value in values.items() if value and value in last.message)
    return next(named, "token" if "token" in last.message else "")


@require_safe
@never_cache
def connections(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team who may see money."""
    return connections_page(request, *team_for(request, slug, Permission.VIEW_MONEY))


def connections_page(
    request: HttpRequest,
    team: Team,
    permissions: frozenset[Permission],
    *,
    form: ConnectionForm | None = None,
    recruiter_form: RecruiterForm | None = None,
) -> HttpResponse:
    budget = Budget.objects.filter(team=team).first()
    rows = list(Connection.objects.of(team))
    recruiters = Recruiter.objects.of(team).select_related("connection")
    recruiters = recruiters.prefetch_related("recruitments")
    recruiter_job = recruiter_jobs(team).first()
    context = {
        "team": team,
        "connections": rows,
        "has_this_site": any(each.is_on_this_site and not each.closed_at for each in rows),
        "form": form or ConnectionForm(),
        "budget_form": BudgetForm(initial={"cap_usd": budget.cap_usd if budget else None}),
        "may_manage": Permission.MANAGE in permissions,
        "recruiters": [(one, *charges_of(one)) for one in recruiters],
        "recruiter_form": recruiter_form or RecruiterForm(team, last=recruiter_job),
        "recruiter_job": recruiter_job,
    }
    context |= connecting_context(team, person(request))
    return render(request, "hits/connections.html", context)


@require_safe
@never_cache
def connection_progress(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team. Polled by pages; reloads them at the end."""
    team, _permissions = team_for(request, slug, Permission.VIEW)
    jobs = recruiter_jobs(team) if request.GET.get("of") == "recruiter" else connection_jobs(team)
    job = jobs.first()
    context = {"connecting": job, "team": team, "of": request.GET.get("of", "")}
    return progress_page(
        request, "hits/_connecting.html", context, is_over=not (job and job.is_unfinished)
    )


@require_POST
def connect_site(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: managers of the team, if the site lets it become a requester."""
    team, _permissions = team_for(request, slug, Permission.MANAGE)
    request_site(request, team)
    return redirect("console:connections", slug)


@require_POST
def connect(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: managers of the team."""
    team, permissions = team_for(request, slug, Permission.MANAGE)
    form = ConnectionForm(request.POST)
    if not form.is_valid():
        return connections_page(request, team, permissions, form=form)
    data = form.cleaned_data
    request_connection(
        team=team,
        name=data["name"],
        endpoint_url=data["endpoint_url"],
        key=AccessKey(data["access_key_id"], data["secret_access_key"]),
        fees=data["fees"],
        actor=person(request),
    )
    return redirect("console:connections", slug)


@require_POST
def close(request: HttpRequest, slug: str, connection_id: int) -> HttpResponse:
    """Access: managers of the team."""
    team, _permissions = team_for(request, slug, Permission.MANAGE)
    close_connection(
        connection=get_object_or_404(Connection.objects.of(team), pk=connection_id),
        actor=person(request),
    )
    return redirect("console:connections", slug)


@require_POST
def team_budget(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: managers of the team."""
    store_budget(request, team=team_for(request, slug, Permission.MANAGE)[0])
    return redirect("console:connections", slug)


def store_budget(request: HttpRequest, **about: Any) -> None:
    form = BudgetForm(request.POST)
    if form.is_valid():
        set_budget(**about, cap_usd=form.cleaned_data["cap_usd"], actor=person(request))
    else:
        messages.error(request, problems_of(form))


@require_POST
def connect_recruiter(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: managers of the team. The token is tried in the background."""
    team, permissions = team_for(request, slug, Permission.MANAGE)
    form = RecruiterForm(team, request.POST)
    if not form.is_valid():
        return connections_page(request, team, permissions, recruiter_form=form)
    request_recruiter(**form.cleaned_data, actor=person(request))
    return redirect("console:connections", slug)


@require_POST
def disconnect_recruiter(request: HttpRequest, slug: str, recruiter_id: int) -> HttpResponse:
    """Access: managers of the team."""
    team, _permissions = team_for(request, slug, Permission.MANAGE)
    request_end(
        recruiter=get_object_or_404(Recruiter.objects.of(team), pk=recruiter_id),
        actor=person(request),
    )
    return redirect("console:connections", slug)


def connecting_context(team: Team, user: User) -> dict[str, Any]:
    return {
        "may_connect_this_site": may_connect_this_site(team, user),
        "connecting": connection_jobs(team).first(),
        "test_funds_usd": TEST_FUNDS_USD if settings.MARKETPLACE_TEST_FUNDS else None,
    }


def request_site(request: HttpRequest, team: Team) -> None:
    try:
        request_this_site(
            team=team, name=_("This site"), with_test_funds=True, actor=person(request)
        )
    except HitsError as error:
        messages.error(request, str(error), extra_tags=error.code)
