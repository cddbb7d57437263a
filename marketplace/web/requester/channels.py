import csv
from collections.abc import Callable, Iterable
from functools import partial, wraps
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _, ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from marketplace.exceptions import ChannelDoesNotExist, InvalidParameter, require
from marketplace.models import RecruitedStudy, RecruiterConnection, Requester, Session
from marketplace.recruiting.calls import request_action
from marketplace.recruiting.charges import totals_of
from marketplace.recruiting.files import (
    MOST_ERRORS,
    can_fetch,
    demographics_file,
    import_statuses,
    invitations_file,
    join_file,
    participants_file,
    request_demographics,
)
from marketplace.recruiting.studies import (
    PRESETS,
    close_study,
    find_study,
    invite as invite_people,
    link_query,
    open_study,
    set_ways_back,
)
from marketplace.web.requester.forms import InviteForm, StatusesForm, StudyForm, WaysBackForm
from marketplace.web.requester.pages import is_owner, requester_required, user_of

INVITATIONS_PER_PAGE = 100
Kind = RecruiterConnection.Kind


def study_page(
    *, is_owners: bool
) -> Callable[[Callable[[HttpRequest, RecruitedStudy], HttpResponse]], Callable[..., HttpResponse]]:
    def decorate(
        view: Callable[[HttpRequest, RecruitedStudy], HttpResponse],
    ) -> Callable[..., HttpResponse]:
        @requester_required
        @wraps(view)
        def guarded(request: HttpRequest, requester: Requester, token: str) -> HttpResponse:
            try:
                study = find_study(requester, token)
            except ChannelDoesNotExist as error:
                raise Http404(str(error)) from error
            require(
                not is_owners or is_owner(requester, user_of(request)),
                PermissionDenied(_("Only an owner may see who participants are.")),
            )
            return view(request, study)

        return guarded

    return decorate


@require_http_methods(["GET", "HEAD", "POST"])
@requester_required
def channels(request: HttpRequest, requester: Requester) -> HttpResponse:
    """The studies, and a form for one more.

    Access: the requester's users.
    """
    form = StudyForm(
        request.POST if request.method == "POST" else None,
        requester=requester,
        is_owner=is_owner(requester, user_of(request)),
        initial=_suggestion(request),
    )
    if form.is_valid():
        return redirect(
            "marketplace:channel",
            requester.public_id,
            open_study(
                requester=requester,
                hit_type=form.cleaned_data["hit_type"],
                values=form.values(),
                user=user_of(request),
            ).token,
        )
    return render(
        request,
        "marketplace/requester/channels.html",
        {
            "requester": requester,
            "studies": RecruitedStudy.objects.filter(requester=requester)
            .select_related("hit_type", "connection")
            .annotate(n_sessions=Count("sessions"))
            .order_by("-pk"),
            "form": form,
            "presets": [(key, preset.panel) for key, preset in PRESETS.items()],
        },
    )


@require_safe
@study_page(is_owners=False)
def channel(request: HttpRequest, row: RecruitedStudy) -> HttpResponse:
    """One study: its links and who came.

    Access: the requester's users.
    """
    return _show(request, row, InviteForm())


@require_POST
@study_page(is_owners=True)
def invite(request: HttpRequest, row: RecruitedStudy) -> HttpResponse:
    """Make links for single participants.

    Access: the requester's owners.
    """
    form = InviteForm(request.POST)
    if not form.is_valid():
        return _show(request, row, form)
    labels = form.cleaned_data["labels"]
    try:
        invitations = invite_people(study=row, labels=labels, user=user_of(request))
    except InvalidParameter as error:  # of a panel, whose page has no such form
        raise Http404(str(error)) from error
    n = len(invitations)
    messages.success(request, ngettext("%(n)d link made.", "%(n)d links made.", n) % {"n": n})
    if n < len(labels):
        messages.warning(
            request,
            ngettext(
                "%(n)d line names who has a link already: it stays theirs.",
                "%(n)d lines name who has a link already: it stays theirs.",
                len(labels) - n,
            )
            % {"n": len(labels) - n},
        )
    return redirect("marketplace:channel", row.requester.public_id, row.token)


@require_POST
@study_page(is_owners=True)
def ways_back(request: HttpRequest, row: RecruitedStudy) -> HttpResponse:
    """Say where participants return to, for each outcome, and with which of their ids.

    Access: the requester's owners.
    """
    require(
        row.connection.kind != Kind.PROLIFIC,
        Http404(_("Participants of Prolific go back to Prolific.")),
    )
    form = WaysBackForm(request.POST, study=row)
    if not form.is_valid():
        return _show(request, row, InviteForm(), form)
    set_ways_back(study=row, addresses=form.cleaned_data, user=user_of(request))
    messages.success(request, _("The addresses to go back to are stored."))
    return redirect("marketplace:channel", row.requester.public_id, row.token)


@require_POST
@study_page(is_owners=True)
def statuses(request: HttpRequest, row: RecruitedStudy) -> HttpResponse:
    """Take over what the recruiter says became of the participants, by its ids of them.

    Access: the requester's owners.
    """
    form = StatusesForm(request.POST, request.FILES, study=row)
    if not form.is_valid():
        return _show(request, row, InviteForm(), statuses_form=form)
    result = import_statuses(row, form.rows, user=user_of(request))
    n = result.n_changed
    messages.success(
        request,
        ngettext("%(n)d participation changed.", "%(n)d participations changed.", n) % {"n": n},
    )
    for contradiction in result.contradictions[:MOST_ERRORS]:
        messages.warning(request, contradiction)
    return redirect("marketplace:channel", row.requester.public_id, row.token)


@require_POST
@study_page(is_owners=False)
def close(request: HttpRequest, row: RecruitedStudy) -> HttpResponse:
    """Close this study; one that is posted at a recruiter is stopped or discarded there.

    Access: the requester's users.
    """
    if row.connection.kind != Kind.PROLIFIC:
        close_study(study=row, user=user_of(request))
        messages.success(request, _("“%(name)s” is closed.") % {"name": row.name})
        return redirect("marketplace:channels", row.requester.public_id)
    is_draft = row.state == RecruitedStudy.State.DRAFT
    actions = RecruitedStudy.Action
    try:
        request_action(study=row, action=actions.DISCARD if is_draft else actions.STOP)
    except InvalidParameter as refused:
        messages.error(request, str(refused), extra_tags=refused.code)
    else:
        text = _("“%(name)s” will be closed at %(recruiter)s, and then here.")
        messages.success(request, text % {"name": row.name, "recruiter": row.connection.name})
    return redirect("marketplace:channel", row.requester.public_id, row.token)


@require_POST
@study_page(is_owners=True)
def links(request: HttpRequest, row: RecruitedStudy) -> HttpResponse:
    """The participants' links, and who each is, as CSV. By POST: each download is written down.

    Access: the requester's owners.
    """
    return _csv(
        "invitations.csv", invitations_file(row, partial(_link, request), user=user_of(request))
    )


@require_POST
@study_page(is_owners=False)
def participants(request: HttpRequest, row: RecruitedStudy) -> HttpResponse:
    """Who came, by Worker ID, as CSV. By POST: each download is written down.

    Access: the requester's users.
    """
    return _csv("participants.csv", participants_file(row, user=user_of(request)))


@require_POST
@study_page(is_owners=True)
def join(request: HttpRequest, row: RecruitedStudy) -> HttpResponse:
    """The same with the recruiter's ids. By POST: each download is written down.

    Access: the requester's owners.
    """
    return _csv("join.csv", join_file(row, user=user_of(request)))


@require_POST
@study_page(is_owners=True)
def fetch_demographics(request: HttpRequest, row: RecruitedStudy) -> HttpResponse:
    """Have the recruiter asked what participants told it.

    Access: the requester's owners.
    """
    if can_fetch(row):
        request_demographics(study=row, user=user_of(request))
        messages.success(request, _("The recruiter will be asked."))
    return redirect("marketplace:channel", row.requester.public_id, row.token)


@require_POST
@study_page(is_owners=True)
def demographics(request: HttpRequest, row: RecruitedStudy) -> HttpResponse:
    """What participants told their recruiter, by Worker ID, as CSV.

    Access: the requester's owners.
    """
    return _csv("demographics.csv", demographics_file(row, user=user_of(request)))


def _csv(name: str, rows: Iterable[tuple[str, ...]]) -> HttpResponse:
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    csv.writer(response).writerows(rows)
    return response


def _show(
    request: HttpRequest,
    row: RecruitedStudy,
    form: InviteForm,
    ways_back: WaysBackForm | None = None,
    statuses_form: StatusesForm | None = None,
) -> HttpResponse:
    invitations = row.invitations.select_related("worker").order_by("pk")
    page = Paginator(invitations, INVITATIONS_PER_PAGE).get_page(request.GET.get("page"))
    states = row.sessions.values_list("state").annotate(n=Count("pk")).order_by("state")
    may_join = is_owner(row.requester, user_of(request))
    return render(
        request,
        "marketplace/requester/channel.html",
        {
            "requester": row.requester,
            "is_owner": may_join,
            "study": row,
            "charges": list(totals_of(row)),
            "is_followed": bool(row.connection.encrypted_token),
            "can_fetch_demographics": may_join and can_fetch(row),
            "has_demographics": may_join
            and row.sessions.filter(demographics__isnull=False).exists(),
            "link": _link(request, row.token) + _query(row),
            "page": page if may_join else None,
            "rows": [(one, _link(request, one.token)) for one in page] if may_join else [],
            "n_invited": page.paginator.count,
            "n_accepted": invitations.exclude(worker=None).count(),
            "states": [(str(Session.State(state).label), n) for state, n in states],
            "participants": row.sessions.values("worker").distinct().count(),
            "codes": row.codes.order_by("pk"),
            "ways_back": ways_back or WaysBackForm(study=row),
            "statuses": statuses_form or StatusesForm(study=row),
            "form": form,
        },
    )


def _suggestion(request: HttpRequest) -> dict[str, Any]:
    preset = PRESETS.get(request.GET.get("panel", ""))
    if preset is None:
        return {"kind": Kind.OWN_LAB}
    return preset.study_values() | {"kind": Kind.LINK_PANEL, "name": preset.panel}


def _link(request: HttpRequest, token: str) -> str:
    return request.build_absolute_uri(reverse("marketplace:arrive", args=[token]))


def _query(row: RecruitedStudy) -> str:
    if row.connection.kind == Kind.OWN_LAB:
        return ""
    return link_query(
        row.connection.name, (row.worker_parameter, row.study_parameter, row.session_parameter)
    )
