from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Concatenate, ParamSpec, TypeVar, cast

from allauth.account.adapter import get_adapter
from csp.constants import SELF
from csp.decorators import csp_replace, csp_update
from django.conf import settings
from django.contrib.auth.decorators import login_not_required, login_required
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from marketplace.exceptions import InvalidQuestion, Missing, WorkRefused
from marketplace.hits.same_person import note_device
from marketplace.models import Assignment, PaidBy, RecruiterConnection, Session, WorkerAccount
from marketplace.recruiting.arrivals import study_at

P = ParamSpec("P")
View = TypeVar("View", bound=Callable[..., HttpResponse])
PARTICIPANTS_VIEWS: set[Callable[..., HttpResponse]] = set()
PARTICIPANTS_ALONE: set[Callable[..., HttpResponse]] = set()
# By what the address of a participant's page says which study it is of.
IDS = ("session_id", "assignment_id", "hit_type_id")
# In the session of a browser that somebody came in with by ids that others may know: the
# participations that it has come to, and whether they began in it.
UNVERIFIED = "unverified_browser"


def worker_of(request: HttpRequest) -> WorkerAccount | None:
    if not request.user.is_authenticated:
        return None
    account: WorkerAccount | None = getattr(request.user, "worker_account", None)
    return account


def worker_required(
    view: Callable[Concatenate[HttpRequest, WorkerAccount, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, P], HttpResponse]:
    """A view for signed-in workers. Others are asked to sign in, and refusals are explained on a
    page."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        worker = worker_of(request)
        if worker is None:
            return _for_nobody(request, view, {name: str(kwargs.get(name, "")) for name in IDS})
        if worker.paid_by == PaidBy.RECRUITER and view not in PARTICIPANTS_VIEWS:
            return redirect("marketplace:your_study")
        try:
            return view(request, worker, *args, **kwargs)
        except (Missing, WorkRefused) as error:
            return explain(request, error)
        except InvalidQuestion as error:
            # Stored by a version without this limit.
            text = _("This task cannot be shown: its form exceeds a limit of this site.")
            return explain(request, WorkRefused(text, code=error.code))

    # Participants have nothing to sign in with.
    if _may_be_of_a_study(view):
        return login_not_required(guarded)
    return login_required(login_url="marketplace:login")(guarded)


def _may_be_of_a_study(view: Callable[..., HttpResponse]) -> bool:
    names = signature(view).parameters
    return view in PARTICIPANTS_ALONE or (
        view in PARTICIPANTS_VIEWS and any(name in names for name in IDS)
    )


def _for_nobody(
    request: HttpRequest, view: Callable[..., HttpResponse], ids: dict[str, str]
) -> HttpResponse:
    if _may_be_of_a_study(view):
        study = study_at(**ids) if any(ids.values()) else None
        if study is not None or view in PARTICIPANTS_ALONE:
            return render(
                request,
                "marketplace/come_back.html",
                {"study": study, "is_arrival": True},
                status=403,
            )
    if request.user.is_authenticated:
        return render(request, "marketplace/not_a_worker.html", status=403)
    return redirect_to_login(request.get_full_path(), reverse("marketplace:login"))


def for_participants(view: View) -> View:
    """A page for recruiters' participants, too; all other pages lead them to their study."""
    PARTICIPANTS_VIEWS.add(view)
    return view


def for_participants_alone(view: View) -> View:
    PARTICIPANTS_ALONE.add(view)
    return for_participants(view)


def mark_browser(request: HttpRequest, *, is_own: bool, session: Session, has_begun: bool) -> None:
    """Remember until sign-out whether the browser is the participant's own, and if not, whether
    this session began in it."""
    if is_own:
        request.session.pop(UNVERIFIED, None)
        Session.objects.filter(pk=session.pk, is_proven=False).update(is_proven=True)
        return
    seen = dict(request.session.get(UNVERIFIED, {}))
    if not has_begun:
        seen[session.public_id] = True
    elif not session.outcome:
        seen.setdefault(session.public_id, False)
    request.session[UNVERIFIED] = seen


def is_own_browser(request: HttpRequest) -> bool:
    return UNVERIFIED not in request.session


def may_see_way_back(request: HttpRequest, session: Session) -> bool:
    """Whether the session ended in this browser. A panel's return address may give credit to
    anybody whose id is in it; Prolific's is worthless without a place there."""
    is_prolific = session.connection.kind == RecruiterConnection.Kind.PROLIFIC
    is_known = is_own_browser(request) or is_prolific
    return is_known or session.public_id in request.session[UNVERIFIED]


def began_here(request: HttpRequest, *, session_id: str = "", assignment_id: str = "") -> bool:
    """Whether this is the participant's own browser or, until the participant is proven, the one
    in which the session began."""
    rows = Session.objects.filter(is_proven=False)
    if assignment_id:
        rows = rows.filter(items__assignment__public_id=assignment_id)
    else:
        rows = rows.filter(public_id=session_id)
    if is_own_browser(request):
        worker = worker_of(request)
        is_participant = worker is not None and worker.paid_by == PaidBy.RECRUITER
        # Looked at first: each page and draft asks, and only the first of them has to write.
        if is_participant and (unproven := rows.filter(worker=worker)).exists():
            unproven.update(is_proven=True)
        return True
    return bool(request.session[UNVERIFIED].get(rows.values_list("public_id", flat=True).first()))


def in_own_browser(
    view: Callable[Concatenate[HttpRequest, WorkerAccount, P], HttpResponse],
) -> Callable[Concatenate[HttpRequest, WorkerAccount, P], HttpResponse]:
    """A page with a participant's answers. Nobody who came in only by the ids in a link may read
    or delete them."""

    @wraps(view)
    def guarded(
        request: HttpRequest, worker: WorkerAccount, /, *args: P.args, **kwargs: P.kwargs
    ) -> HttpResponse:
        ids = {name: str(kwargs.get(name, "")) for name in ("session_id", "assignment_id")}
        if began_here(request, **ids):
            return view(request, worker, *args, **kwargs)
        # Without the Worker ID, which leads from an id that others know to the answers.
        refused = WorkRefused(
            _(
                "Your link does not prove that it is you, and this is not the browser that you "
                "began in. Open this page there, or write to who runs the study, with the id "
                "that you came with: your data can be sent to you, and erased, by letter, too."
            ),
            code="not_your_browser",
            status=403,
        )
        return explain(request, refused, template="marketplace/not_your_browser.html")

    return guarded


def worker_data(
    view: Callable[Concatenate[HttpRequest, WorkerAccount, P], JsonResponse],
) -> Callable[Concatenate[HttpRequest, P], JsonResponse]:
    """A JSON view for our own pages' scripts; refusals are JSON, too."""

    @login_not_required
    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> JsonResponse:
        worker = worker_of(request)
        if worker is None:
            return JsonResponse(
                {"error": _("You are signed out."), "code": "signed_out"}, status=401
            )
        try:
            return view(request, worker, *args, **kwargs)
        except (Missing, WorkRefused) as error:
            return JsonResponse(
                {"error": str(error), "code": error.code},
                status=error.status if isinstance(error, WorkRefused) else 404,
            )

    return guarded


def explain(
    request: HttpRequest,
    error: Missing | WorkRefused,
    *,
    template: str = "marketplace/refused.html",
    **more: object,
) -> HttpResponse:
    if isinstance(error, Missing):
        # The error's own text is for programs, and not translated.
        status, text = 404, _("This task does not exist, or you cannot see it.")
    else:
        status, text = error.status, str(error)
    return render(
        request,
        template,
        {"explanation": text, "code": error.code, "worker": worker_of(request)} | more,
        status=status,
    )


# What a request says of the device it came from.


def note_device_of(request: HttpRequest, assignment: Assignment) -> None:
    headers = ("User-Agent", "Accept-Language", "Sec-CH-UA-Platform")
    note_device(
        assignment,
        address=address_of(request),
        browser="\n".join(request.headers.get(name, "")[:500] for name in headers),
    )


def address_of(request: HttpRequest) -> str:
    return str(get_adapter(request).get_client_ip(request))


def country_of(request: HttpRequest) -> str:
    name = settings.MARKETPLACE_COUNTRY_HEADER
    said = request.headers.get(name, "").strip().upper() if name else ""
    return said if len(said) == 2 and said.isascii() and said.isalpha() else ""


# What pages with requesters' content may load, beyond this site's own files.

# Pictures, sounds and pages of requesters may be anywhere; over HTTPS no browser takes others.
SCHEMES = ["https:"] if settings.HTTPS else ["https:", "http:"]


def with_requesters_content(view: Callable[P, HttpResponse]) -> Callable[P, HttpResponse]:
    # A task is in a frame, or a form with pictures and sounds.
    policy = {"img-src": SCHEMES, "media-src": SCHEMES, "frame-src": [SELF, *SCHEMES]}
    guarded = csp_update(policy)(view)  # type: ignore[arg-type]
    return cast(Callable[P, HttpResponse], guarded)


def in_any_frame(view: Callable[P, HttpResponse]) -> Callable[P, HttpResponse]:
    # A requester's page may be anywhere.
    guarded = csp_replace({"frame-ancestors": None})(view)  # type: ignore[arg-type]
    return cast(Callable[P, HttpResponse], guarded)
