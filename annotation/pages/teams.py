from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from accounts.audit import record
from accounts.exceptions import AccountsError
from accounts.models import AuditEntry, AuditEntryQuerySet, Membership, Team
from accounts.roles import Permission, Role
from accounts.teams import (
    appointable_roles,
    create_own_team,
    may_create_teams,
    set_wage_floor,
)
from annotation.models import Invitation, Study
from console.access import (
    person,
    team_for,
)
from console.forms import AuditLogForm, InvitationForm, NewTeamForm, WageFloorForm, problems_of
from console.tables import page_of
from presentation.row_files import csv_parts

# Entries whose subject is a WorkerId, and details that hold ids of workers or of their assignments.
ABOUT_A_WORKER = ("worker.note",)
OF_WORKERS = ("assignment", "assignments", "worker", "workers")
COLUMNS = ["position", "at", "person", "action", "subject", "details", "hash"]


@require_safe
def teams(request: HttpRequest) -> HttpResponse:
    """Access: signed in; lists the teams in which one has a role."""
    own = Team.objects.of(person(request)).prefetch_related("memberships__user", "studies")
    roles = dict(person(request).memberships.values_list("team", "role"))
    rows = [(team, Role(roles[team.pk]).label if team.pk in roles else "") for team in own]
    return render(
        request,
        "annotation/teams/teams.html",
        {"rows": rows, "form": NewTeamForm() if may_create_teams(person(request)) else None},
    )


@require_POST
def new_team(request: HttpRequest) -> HttpResponse:
    """Access: signed in, if the site lets everyone create teams; operators. The creator owns it."""
    form = NewTeamForm(request.POST)
    try:
        if not form.is_valid():
            raise AccountsError(problems_of(form))
        team = create_own_team(name=form.cleaned_data["name"], owner=person(request))
    except AccountsError as error:
        messages.error(request, str(error), extra_tags=error.code)
        return redirect("console:teams")
    return redirect("console:team", team.slug)


@require_safe
def team(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: members of the team; invitations are shown to those who may manage it."""
    row, permissions = team_for(request, slug)
    return render(
        request,
        "annotation/teams/team.html",
        _may(permissions)
        | {
            "team": row,
            "members": _members(row, permissions),
            "roles": appointable_roles(permissions),
            "studies": row.studies.order_by("title"),
            "own_studies": _own_studies(request, permissions),
            "invitations": Invitation.objects.open().filter(team=row).select_related("invited_by"),
            "invitation_form": InvitationForm(roles=appointable_roles(permissions)),
            "wage_floor_form": WageFloorForm(instance=row),
            "link": request.session.pop(f"link:{row.pk}", None),
        },
    )


def _members(team: Team, permissions: frozenset[Permission]) -> list[tuple[Membership, bool]]:
    roles = appointable_roles(permissions)
    return [
        (member, member.role in roles)
        for member in team.memberships.exclude(user__in=team.api_tokens.values("user"))
        .select_related("user")
        .order_by("user__username")
    ]


def _own_studies(request: HttpRequest, permissions: frozenset[Permission]) -> list[Study]:
    if Permission.EDIT not in permissions:
        return []
    return list(Study.objects.filter(team=None, owner=person(request).pk).order_by("title"))


def _may(permissions: frozenset[Permission]) -> dict[str, Any]:
    return {"may": {permission.value: True for permission in permissions}}


@require_POST
def wage_floor(request: HttpRequest, slug: str) -> HttpResponse:
    team, _permissions = team_for(request, slug, Permission.MANAGE)
    form = WageFloorForm(request.POST, instance=Team.objects.get(pk=team.pk))
    if form.is_valid():
        set_wage_floor(
            team=team, wage_floor_usd=form.cleaned_data["wage_floor_usd"], actor=person(request)
        )
        messages.success(request, _("The least pay an hour was saved."))
    else:
        messages.error(request, problems_of(form))
    return redirect("console:team", slug)


@require_safe
def audit_log(request: HttpRequest, slug: str) -> HttpResponse:
    team, permissions = team_for(request, slug, Permission.VIEW_AUDIT_LOG)
    entries, form = _entries(request, team)
    page = page_of(request, entries)
    page.object_list = [readable_entry(entry, permissions) for entry in page.object_list]
    context = {"team": team, "form": form, "page": page}
    return render(request, "annotation/teams/audit_log.html", context | _may(permissions))


@require_safe
def audit_log_file(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Access: those who may view the audit log; the download is an entry itself."""
    team, permissions = team_for(request, slug, Permission.VIEW_AUDIT_LOG)
    entries, _form = _entries(request, team)
    rows = [_row(readable_entry(entry, permissions)) for entry in entries]
    record(team=team, actor=person(request), action="export", subject="audit log")
    response = StreamingHttpResponse(csv_parts(COLUMNS, rows), content_type="text/csv")
    response["Content-Disposition"] = f'attachment; filename="{team.slug}-audit-log.csv"'
    return response


def _entries(request: HttpRequest, team: Team) -> tuple[AuditEntryQuerySet, AuditLogForm]:
    entries = AuditEntry.objects.of(team).order_by("-position")
    names = entries.order_by().values_list
    form = AuditLogForm(
        request.GET,
        actions=sorted(set(names("action", flat=True).distinct())),
        names=sorted(set(names("actor_name", flat=True).distinct()) - {""}),
    )
    form.is_valid()
    if action := form.cleaned_data.get("action"):
        entries = entries.filter(action=action)
    if name := form.cleaned_data.get("person"):
        entries = entries.filter(actor_name=name)
    return entries, form


def readable_entry(entry: AuditEntry, permissions: frozenset[Permission]) -> AuditEntry:
    if Permission.VIEW_WORKERS not in permissions:
        if entry.action in ABOUT_A_WORKER:
            entry.subject = _("a worker")
        entry.details = {
            name: _number_of(value) if name in OF_WORKERS else value
            for name, value in entry.details.items()
        }
    return entry


def _number_of(ids: Any) -> int:
    return ids if isinstance(ids, int) else len(ids) if isinstance(ids, list) else 1


def _row(entry: AuditEntry) -> list[Any]:
    return [
        entry.position,
        entry.at.isoformat(timespec="seconds"),
        entry.actor_name,
        entry.action,
        entry.subject,
        "; ".join(f"{name}: {value}" for name, value in entry.details.items()),
        entry.hash,
    ]
