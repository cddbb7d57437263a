"""Studies to which participants come by links: from a panel, or invited by the requester's own lab.

A panel's link says in its parameters who comes; the panel learns each outcome by a code or by an
address of its own. Everything else passes as CSV, by the requester's hands.
"""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from encryption import decrypt
from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import ChannelDoesNotExist, InvalidParameter, first_or_raise, require
from marketplace.hits.assignments import let_recruiter_pay
from marketplace.models import (
    HitType,
    Invitation,
    Outcome,
    OutcomeCode,
    PaidBy,
    RecruitedStudy,
    RecruiterConnection,
    Requester,
    Session,
)
from marketplace.recruiting.records import Arrival, NotVerified
from marketplace.users import User

LONGEST_ID = 200
PLACEHOLDERS = ("{code}", "{worker}", "{study}", "{session}")
# Those that say who somebody is at their panel.
IDS = ("{worker}", "{session}")


@dataclass(frozen=True)
class Parameters:
    """Names of the URL parameters with a panel's ids; "" if it does not send one."""

    worker: str = ""
    study: str = ""
    session: str = ""


@dataclass(frozen=True)
class LinkPanel:
    name: str
    parameters: Parameters
    # By code: an address with placeholders. No address: the participant copies the code.
    addresses: Mapping[str, str] = field(default_factory=dict)
    # What the placeholders but the code stand for, of the participant who goes back.
    ids: Mapping[str, str] = field(default_factory=dict, repr=False)

    def read_arrival(self, parameters: Mapping[str, str]) -> Arrival:
        """Return who the link says comes. Nothing proves it, so it opens only an account of this
        panel."""
        participant = self._required(parameters, self.parameters.worker)
        submission = self._required(parameters, self.parameters.session)
        study_id = _read(parameters, self.parameters.study)
        return Arrival(study=study_id, submission=submission, participant=participant)

    def way_back(self, code: str) -> str:
        address = self.addresses.get(code, "")
        for name, value in ({"code": code} | dict(self.ids)).items():
            address = address.replace(f"{{{name}}}", quote(value, safe=""))
        return address

    def _required(self, parameters: Mapping[str, str], name: str) -> str:
        value = _read(parameters, name)
        if name and not value:
            raise NotVerified(
                _(
                    "The link lacks %(parameter)s, by which %(panel)s says who you are. "
                    "Open it from %(panel)s again."
                )
                % {"parameter": name, "panel": self.name},
                code="missing_id",
            )
        return value


def panel_of(study: RecruitedStudy, session: Session | None = None) -> LinkPanel:
    """The study's panel; with a session, it can lead the participant back. An own lab sends no
    ids: the link itself identifies the participant."""
    is_panel = study.connection.kind != Kind.OWN_LAB
    names = Parameters(study.worker_parameter, study.study_parameter, study.session_parameter)
    parameters = names if is_panel else Parameters()
    if session is None:
        return LinkPanel(name=study.connection.name, parameters=parameters)
    stored = session.encrypted_participant_id
    return LinkPanel(
        name=study.connection.name,
        parameters=parameters,
        addresses=dict(study.codes.filter(code=session.code).values_list("code", "redirect_url")),
        ids={
            "worker": decrypt(stored) if stored else "",
            "study": session.external_study_id,
            "session": session.submission_id if is_panel else "",
        },
    )


def is_address(text: str, *, allow_http: bool) -> bool:
    """Whether this is a full web address whose host no placeholder can change."""
    schemes = ("https", "http") if allow_http else ("https",)
    if "\\" in text or not text.isprintable() or " " in text:
        return False  # browsers read a backslash as a slash, and go to another host
    try:
        parts = urlsplit(text)
        is_fixed = bool(parts.hostname) and parts.port != 0 and not {"{", "@"} & set(parts.netloc)
    except ValueError:
        return False
    return is_fixed and parts.scheme in schemes


def address_error(text: str) -> str:
    if not text:
        return ""
    if not is_address(text, allow_http=not settings.HTTPS):
        return _(
            "The address to go back to must be a full https address; its host can't be a "
            "placeholder. Placeholders after it: %(names)s."
        ) % {"names": ", ".join(PLACEHOLDERS)}
    if "EXPERIMENT" in text or "TOKEN" in text or "YOUR-SITE" in text:
        return _(
            "Put your own study's values in place of YOUR-SITE, EXPERIMENT and TOKEN in the "
            "address to go back to."
        )
    return ""


def repeated_parameter(*names: str) -> str:
    """What is wrong if two ids share a URL parameter, or "". A participant's id would be shown as
    a study's, which is no secret."""
    given = [name.casefold() for name in names if name]
    if len(set(given)) == len(given):
        return ""
    return _("The ids of participant, study and submission come in parameters of different names.")


def _read(parameters: Mapping[str, str], name: str) -> str:
    value = parameters.get(name, "").strip() if name else ""
    require(
        len(value) <= LONGEST_ID and value.isprintable() and not _is_unfilled(value),
        NotVerified(
            _("What the link says for %(name)s is not an id.") % {"name": name}, code="bad_id"
        ),
    )
    return value


def _is_unfilled(value: str) -> bool:
    """Whether the panel left its placeholder: {{%PID%}}, %SURVEY_CODE%."""
    return "{{" in value or "${" in value or (len(value) > 2 and value[0] == value[-1] == "%")


# What panels send and whither their participants return, as settings of the panel with links.


@dataclass(frozen=True)
class Preset:
    """A panel's own settings, from the vendors' pages on links and redirects."""

    panel: str
    worker_parameter: str
    study_parameter: str = ""
    session_parameter: str = ""
    redirect_url: str = ""
    # Whether that address says that somebody has finished, and nothing else.
    is_for_completed: bool = False
    # How the panel marks the place of a value in the link; empty: it adds its parameters itself.
    mark: str = ""

    def study_values(self) -> dict[str, Any]:
        values = asdict(self)
        del values["mark"]
        return values


PRESETS = {
    "prolific": Preset(
        "Prolific",
        worker_parameter="PROLIFIC_PID",
        study_parameter="STUDY_ID",
        session_parameter="SESSION_ID",
        redirect_url="https://app.prolific.com/submissions/complete?cc={code}",
        mark="{{%NAME%}}",
    ),
    "connect": Preset(
        "CloudResearch Connect",
        worker_parameter="participantId",
        study_parameter="projectId",
        session_parameter="assignmentId",
        redirect_url="https://connect.cloudresearch.com/participant/project/{study}/complete",
        is_for_completed=True,
    ),
    "sona": Preset(
        "SONA",
        worker_parameter="survey_code",
        redirect_url="https://YOUR-SITE.sona-systems.com/webstudy_credit.aspx"
        "?experiment_id=EXPERIMENT&credit_token=TOKEN&survey_code={worker}",
        is_for_completed=True,
        mark="%SURVEY_CODE%",
    ),
}


def link_query(panel: str, names: tuple[str, ...]) -> str:
    """The query that the requester appends to the link at this panel, which fills in the ids."""
    known = {preset.panel: preset.mark for preset in PRESETS.values()}
    mark = known.get(panel, PRESETS["prolific"].mark)
    pairs = [(name, mark.replace("NAME", name)) for name in names if name]
    return f"?{urlencode(pairs, safe='{}%')}" if mark and pairs else ""


# The code of each outcome: random, one a study, stored when the study is opened.

# Without letters and digits that are taken for each other.
ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
LENGTH = 8


# What is decided here. Whether attention checks were failed shows only in answers that are read
# elsewhere, after the participant has gone back with a code; a follow-up is a study of its own.
DECIDED = (
    Outcome.COMPLETED,
    Outcome.NO_CONSENT,
    Outcome.SCREENED_OUT,
    Outcome.NO_MORE_ITEMS,
)


def create_codes(
    study: RecruitedStudy,
    *,
    completed: str = "",
    redirect_url: str = "",
    is_for_completed: bool = False,
) -> None:
    """A code per possible outcome. `completed` replaces the random code of completion; the
    redirect address is used for every outcome or for completion only."""
    codes = {
        outcome: "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
        for outcome in [*DECIDED, *([Outcome.INCOMPATIBLE_DEVICE] if study.devices else [])]
    }
    if completed:
        codes[Outcome.COMPLETED] = completed
    OutcomeCode.objects.bulk_create(
        OutcomeCode(
            study=study,
            outcome=outcome,
            code=code,
            redirect_url="" if is_for_completed and outcome != Outcome.COMPLETED else redirect_url,
        )
        for outcome, code in codes.items()
    )


def code_of(study: RecruitedStudy, outcome: str) -> str:
    return OutcomeCode.objects.get(study=study, outcome=outcome).code


MOST_INVITATIONS = 1000
MOST_ITEMS = 100
OWN_LAB = "Own lab"
PROLIFIC = PRESETS["prolific"].study_values()
Kind = RecruiterConnection.Kind


@dataclass(frozen=True)
class StudyValues:
    name: str
    kind: str
    panel: str = ""
    worker_parameter: str = ""
    study_parameter: str = ""
    session_parameter: str = ""
    completion_code: str = ""
    redirect_url: str = ""
    # Whether only those who have finished go back to it, as a panel that gives credit needs.
    is_for_completed: bool = False
    items_per_session: int = 1
    # None: the time allotted for a HIT, as many times as there are HITs.
    maximum_seconds: int | None = None
    discards_returned: bool = False
    is_shared: bool = True
    annotation_prefix: str = ""
    # Opening a study again under the same token returns the first one.
    request_token: str = ""


@transaction.atomic
def open_study(
    *, requester: Requester, hit_type: HitType, values: StudyValues, user: User | None = None
) -> RecruitedStudy:
    _check(requester, hit_type, values)
    if values.request_token:
        Requester.objects.select_for_update(no_key=True).get(pk=requester.pk)
        known = RecruitedStudy.objects.filter(
            requester=requester, request_token=values.request_token
        ).first()
        if known is not None:
            return known
    columns = asdict(values)
    kind, panel = columns.pop("kind"), columns.pop("panel")
    completed = columns.pop("completion_code")
    way_back = {name: columns.pop(name) for name in ("redirect_url", "is_for_completed")}
    columns["maximum_seconds"] = values.maximum_seconds or (
        hit_type.assignment_duration_seconds * values.items_per_session
    )
    name = panel if kind == Kind.LINK_PANEL else OWN_LAB
    connection, _is_new = RecruiterConnection.objects.get_or_create(
        requester=requester, kind=kind, name=name, defaults={"created_at": clock.now()}
    )
    study = RecruitedStudy.objects.create(
        requester=requester,
        connection=connection,
        hit_type=hit_type,
        created_at=clock.now(),
        **columns,
    )
    create_codes(study, completed=completed, **way_back)
    if hit_type.paid_by == PaidBy.LEDGER:
        let_recruiter_pay(hit_type)
    note("study.open", subject=study.name, user=user, requester=requester)
    return study


@transaction.atomic
def let_participants_work(*, hit_type: HitType) -> None:
    if hit_type.paid_by == PaidBy.LEDGER:
        let_recruiter_pay(hit_type)
        note("hit_type.hand_over", subject=hit_type.public_id, requester=hit_type.requester)


@transaction.atomic
def invite(
    *, study: RecruitedStudy, labels: Sequence[str], user: User | None = None
) -> list[Invitation]:
    require_own_lab(study)
    require(
        1 <= len(labels) <= MOST_INVITATIONS,
        InvalidParameter(_("At one time 1 to %(n)s can be invited.") % {"n": MOST_INVITATIONS}),
    )
    RecruitedStudy.objects.select_for_update(no_key=True).get(pk=study.pk)
    present = set(study.invitations.filter(revoked_at=None).values_list("label", flat=True))
    now = clock.now()
    invitations = [
        Invitation.objects.create(study=study, label=label, created_at=now)
        for label in dict.fromkeys(label[:100] for label in labels)
        if label not in present
    ]
    detail = {"invitations": len(invitations)}
    note("study.invite", subject=study.name, user=user, requester=study.requester, detail=detail)
    return invitations


@transaction.atomic
def share_link(*, study: RecruitedStudy, is_shared: bool, user: User | None = None) -> None:
    """Let the study's own link in everybody, or nobody new."""
    require_own_lab(study)
    rows = RecruitedStudy.objects.filter(pk=study.pk).exclude(is_shared=is_shared)
    if rows.update(is_shared=is_shared):
        action = "study.share_link" if is_shared else "study.revoke_shared_link"
        note(action, subject=study.name, user=user, requester=study.requester)
    study.is_shared = is_shared


@transaction.atomic
def set_open(*, study: RecruitedStudy, is_open: bool, user: User | None = None) -> None:
    """Close an own lab's study to newcomers, or open it again."""
    require_own_lab(study)
    if not is_open:
        close_study(study=study, user=user)
    else:
        if RecruitedStudy.objects.filter(pk=study.pk, state=RecruitedStudy.State.STOPPED).update(
            state=RecruitedStudy.State.ACTIVE
        ):
            note("study.reopen", subject=study.name, user=user, requester=study.requester)
    study.refresh_from_db(fields=["state"])


def require_own_lab(study: RecruitedStudy) -> None:
    require(
        study.connection.kind == Kind.OWN_LAB,
        InvalidParameter(
            _("Only a study of your own lab has links for participants."), code="not_own_lab"
        ),
    )


@transaction.atomic
def set_ways_back(
    *, study: RecruitedStudy, addresses: Mapping[str, str], user: User | None = None
) -> None:
    for address in addresses.values():
        if error := address_error(address):
            raise InvalidParameter(error)
    for code in study.codes.filter(outcome__in=addresses):
        code.save_values(redirect_url=addresses[code.outcome])
    note("study.set_ways_back", subject=study.name, user=user, requester=study.requester)


@transaction.atomic
def close_study(*, study: RecruitedStudy, user: User | None = None) -> None:
    # Those who came can come back by their link.
    rows = RecruitedStudy.objects.filter(pk=study.pk).exclude(state=RecruitedStudy.State.STOPPED)
    if rows.update(state=RecruitedStudy.State.STOPPED):
        note("study.close", subject=study.name, user=user, requester=study.requester)


def find_study(requester: Requester, token: str) -> RecruitedStudy:
    return first_or_raise(
        RecruitedStudy.objects.filter(requester=requester, token=token).select_related(
            "hit_type", "requester", "connection"
        ),
        ChannelDoesNotExist(token),
    )


def _check(requester: Requester, hit_type: HitType, values: StudyValues) -> None:
    require(
        hit_type.requester_id == requester.pk,
        InvalidParameter(
            _("A study is of a HIT type of the requester's own."), code="not_own_hit_type"
        ),
    )
    require(
        values.kind != Kind.LINK_PANEL or (values.panel and values.worker_parameter),
        InvalidParameter(
            _("A panel needs a name, and the URL parameter in which it sends a participant's id.")
        ),
    )
    if error := repeated_parameter(
        values.worker_parameter, values.study_parameter, values.session_parameter
    ):
        raise InvalidParameter(error, code="repeated_parameter")
    require(
        1 <= values.items_per_session <= MOST_ITEMS,
        InvalidParameter(_("A participation has 1 to %(n)s HITs.") % {"n": MOST_ITEMS}),
    )
    if error := address_error(values.redirect_url):
        raise InvalidParameter(error, code="bad_address")
