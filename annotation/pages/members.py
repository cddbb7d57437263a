from allauth.account.utils import perform_login
from allauth.decorators import rate_limit
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.enrolment import absolute
from accounts.exceptions import AccountsError
from accounts.models import Membership, Team, User
from accounts.roles import PERMISSIONS, Permission, Role
from accounts.teams import appointable_roles, remove_member, set_role
from annotation.access import (
    give_to_team,
    invitation_of,
    invite,
    join,
    join_with_new_account,
    link_for_member,
    remove_study_member,
    revoke,
    set_study_role,
)
from annotation.exceptions import AnnotationError
from annotation.models import Invitation, Study, StudyMembership
from annotation.pages.stages import (
    study_for,
    study_page,
)
from console.access import person, team_for
from console.forms import InvitationForm, NewAccountForm, RoleForm, problems_of
from error_codes import require

REFUSALS = (AccountsError, AnnotationError)


@require_POST
def invite_to_team(request: HttpRequest, slug: str) -> HttpResponse:
    team, permissions = team_for(request, slug, Permission.MANAGE)
    _invite(request, team, InvitationForm(request.POST, roles=appointable_roles(permissions)))
    return redirect("console:team", slug)


@require_POST
def revoke_of_team(request: HttpRequest, slug: str, invitation_id: int) -> HttpResponse:
    team, _permissions = team_for(request, slug, Permission.MANAGE)
    _revoke(request, get_object_or_404(Invitation, team=team, pk=invitation_id))
    return redirect("console:team", slug)


@require_POST
def change_role(request: HttpRequest, slug: str, member_id: int) -> HttpResponse:
    """Access: those who may manage the team; owners are an owner's to change."""
    team, permissions = team_for(request, slug, Permission.MANAGE)
    member = get_object_or_404(Membership, team=team, pk=member_id)
    form = RoleForm(request.POST, roles=appointable_roles(permissions))
    try:
        require(form.is_valid(), AccountsError(problems_of(form)))
        set_role(team=team, user=member.user, role=form.choice, actor=person(request))
        messages.success(request, _("The role was changed."))
    except AccountsError as error:
        messages.error(request, str(error), extra_tags=error.code)
    return redirect("console:team", slug)


@require_POST
def remove(request: HttpRequest, slug: str, member_id: int) -> HttpResponse:
    """Access: those who may manage the team, and members for themselves."""
    team, _permissions = team_for(request, slug)
    member = get_object_or_404(Membership, team=team, pk=member_id)
    try:
        remove_member(member=member, actor=person(request))
    except AccountsError as error:
        messages.error(request, str(error), extra_tags=error.code)
        return redirect("console:team", slug)
    name = member.user.get_username()
    messages.success(request, _("%(name)s is no longer in the team.") % {"name": name})
    remaining = StudyMembership.objects.filter(user=member.user_id, study__team=team)
    if titles := [str(title) for title in remaining.values_list("study__title", flat=True)]:
        messages.warning(
            request,
            _("%(name)s still has access to: %(studies)s. It ends on “Who has access” there.")
            % {"name": name, "studies": ", ".join(titles)},
        )
    is_self = member.user_id == person(request).pk
    return redirect("console:teams") if is_self else redirect("console:team", slug)


@require_POST
def password_link(request: HttpRequest, slug: str, member_id: int) -> HttpResponse:
    """Access: those who may manage the team, for accounts that its invitations made."""
    team, _permissions = team_for(request, slug, Permission.MANAGE)
    member = get_object_or_404(Membership, team=team, pk=member_id)
    try:
        _store_link(
            request,
            team,
            link_for_member(member=member, actor=person(request)),
            _("With this link %(name)s sets a new password, once and within a day.")
            % {"name": member.user.get_username()},
        )
    except AccountsError as error:
        messages.error(request, str(error), extra_tags=error.code)
    return redirect("console:team", slug)


@require_safe
def study_members(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: whoever has a role in the study; invitations are for those who may share it."""
    study = study_for(request, slug)
    context = {
        "section": "members",
        "of_team": members_of_its_team(request, study),
        "members": study.memberships.select_related("user").order_by("user__username"),
        "roles": StudyMembership.ROLES,
        "invitations": Invitation.objects.open().filter(study=study).select_related("invited_by"),
        "invitation_form": InvitationForm(roles=StudyMembership.ROLES),
        "teams": [] if study.team_id else _teams_for_studies(request),
        "link": request.session.pop(f"link:study:{study.pk}", None),
    }
    return study_page(request, study, "annotation/members", context)


@require_POST
def invite_to_study(request: HttpRequest, slug: str) -> HttpResponse:
    study = study_for(request, slug, Permission.MANAGE)
    _invite(request, study, InvitationForm(request.POST, roles=StudyMembership.ROLES))
    return redirect("console:members", slug)


@require_POST
def revoke_of_study(request: HttpRequest, slug: str, invitation_id: int) -> HttpResponse:
    _revoke(
        request,
        get_object_or_404(
            Invitation, study=study_for(request, slug, Permission.MANAGE), pk=invitation_id
        ),
    )
    return redirect("console:members", slug)


@require_POST
def change_study_role(request: HttpRequest, slug: str, member_id: int) -> HttpResponse:
    study = study_for(request, slug, Permission.MANAGE)
    member = get_object_or_404(StudyMembership, study=study, pk=member_id)
    form = RoleForm(request.POST, roles=StudyMembership.ROLES)
    if form.is_valid():
        set_study_role(study=study, user=member.user, role=form.choice, actor=person(request))
        messages.success(request, _("The role was changed."))
    else:
        messages.error(request, problems_of(form))
    return redirect("console:members", slug)


@require_POST
def remove_from_study(request: HttpRequest, slug: str, member_id: int) -> HttpResponse:
    remove_study_member(
        member=get_object_or_404(
            StudyMembership, study=study_for(request, slug, Permission.MANAGE), pk=member_id
        ),
        actor=person(request),
    )
    messages.success(request, _("The role in this study ended."))
    return redirect("console:members", slug)


@require_POST
def give_study(request: HttpRequest, slug: str) -> HttpResponse:
    """Access: the owner of a study that no team has, for a team they work in."""
    study = study_for(request, slug, Permission.OWN)
    team = get_object_or_404(Team.objects.of(person(request)), slug=request.POST.get("team", ""))
    try:
        give_to_team(study=study, team=team, actor=person(request))
        messages.success(request, _("The study belongs to %(team)s now.") % {"team": team})
    except REFUSALS as error:
        messages.error(request, str(error), extra_tags=error.code)
    return redirect("console:members", slug)


def members_of_its_team(request: HttpRequest, study: Study) -> list[Membership]:
    if study.team is None or not Team.objects.of(person(request)).contains(study.team):
        return []
    return list(study.team.memberships.select_related("user").order_by("user__username"))


def _teams_for_studies(request: HttpRequest) -> list[Team]:
    roles = [role for role in Role if Permission.EDIT in PERMISSIONS[role]]
    mine = Membership.objects.filter(user=person(request).pk, role__in=roles)
    return list(Team.objects.filter(pk__in=mine.values("team")))


def _invite(request: HttpRequest, to: Team | Study, form: InvitationForm) -> None:
    try:
        require(form.is_valid(), AccountsError(problems_of(form)))
        email = form.cleaned_data["email"]
        link = invite(
            to=to, email=email, role=form.choice, actor=person(request), link_of=invitation_link
        )
    except REFUSALS as error:
        messages.error(request, str(error), extra_tags=error.code)
        return
    if link:
        _store_link(
            request,
            to,
            link,
            _("Pass this link on to %(email)s. It works once, within a week.") % {"email": email},
        )
    else:
        messages.success(request, _("The invitation is on its way to %(to)s.") % {"to": email})


def _revoke(request: HttpRequest, invitation: Invitation) -> None:
    try:
        revoke(invitation=invitation, actor=person(request))
        messages.success(request, _("The invitation was taken back."))
    except AnnotationError as error:
        messages.error(request, str(error), extra_tags=error.code)


def _store_link(request: HttpRequest, of: Team | Study, link: str, words: str) -> None:
    key = f"link:{of.pk}" if isinstance(of, Team) else f"link:study:{of.pk}"
    request.session[key] = {"address": link, "words": words}


def invitation_link(token: str) -> str:
    return absolute(reverse("console:invitation", args=[token]))


SESSION_KEY = "invitation"


@login_not_required
@never_cache
@require_safe
@rate_limit(action="invitation", limit_get=True)  # type: ignore[untyped-decorator]
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Keep the token out of the address, where other sites and logs would read it.

    Access: whoever has a link that holds.
    """
    try:
        invitation_of(token)
    except AnnotationError as error:
        return _refusal_page(request, error)
    request.session[SESSION_KEY] = token
    return redirect("console:accept")


@login_not_required
@never_cache
@require_safe
def accept(request: HttpRequest) -> HttpResponse:
    """Access: whoever has a link that holds. Opening it accepts nothing yet."""
    try:
        invitation = invitation_of(_token(request))
    except AnnotationError as error:
        return _refusal_page(request, error)
    return _page(request, invitation, NewAccountForm())


@require_POST
def join_signed_in(request: HttpRequest) -> HttpResponse:
    """Access: signed in, with a link that holds."""
    try:
        destination = join(token=_token(request), user=person(request))
    except REFUSALS as error:
        return _refusal_page(request, error)
    del request.session[SESSION_KEY]
    return redirect(_address_of(destination))


@login_not_required
@never_cache
@require_POST
@rate_limit(action="signup")  # type: ignore[untyped-decorator]
def join_anew(request: HttpRequest) -> HttpResponse:
    """Access: whoever has a link that holds and is not signed in."""
    form, token = NewAccountForm(request.POST), _token(request)
    try:
        invitation = invitation_of(token)
    except AnnotationError as error:
        return _refusal_page(request, error)
    user = None if request.user.is_authenticated else _new_user(form, token)
    if user is None:
        return _page(request, invitation, form)
    del request.session[SESSION_KEY]
    signed_in: HttpResponse = perform_login(request, user, redirect_url=_address_of(invitation))
    return signed_in


def _new_user(form: NewAccountForm, token: str) -> User | None:
    if not form.is_valid():
        return None
    try:
        return join_with_new_account(token=token, **form.cleaned_data)
    except REFUSALS as error:
        form.add_error(None, ValidationError(str(error), code=error.code))
        return None


def _page(request: HttpRequest, invitation: Invitation, form: NewAccountForm) -> HttpResponse:
    context = {"invitation": invitation, "form": form, "here": reverse("console:accept")}
    return render(request, "annotation/teams/accept.html", context)


def _refusal_page(request: HttpRequest, error: Exception) -> HttpResponse:
    return render(request, "annotation/teams/invitation_void.html", {"reason": error}, status=410)


def _address_of(invitation: Invitation) -> str:
    if invitation.study is not None:
        return reverse("console:study", args=[invitation.study.slug])
    assert invitation.team is not None
    return reverse("console:team", args=[invitation.team.slug])


def _token(request: HttpRequest) -> str:
    return str(request.session.get(SESSION_KEY, ""))
