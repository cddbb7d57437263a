"""Recruiters that speak by links alone: panels without an API that is called here, and an own lab.

A panel says in parameters of the link who comes, and learns of each outcome by a code or by an
address of its own. Everything else passes as CSV, by the requester's hands.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from encryption import decrypt
from marketplace.models import RecruitedStudy, RecruiterConnection, Session
from marketplace.recruiting.records import Arrival, NotVerified

LONGEST_ID = 200
PLACEHOLDERS = ("{code}", "{worker}", "{study}", "{session}")
# Those that say who somebody is at their panel.
IDS = ("{worker}", "{session}")
Kind = RecruiterConnection.Kind


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
        """The requester's address for this code, with the visitor's ids quoted."""
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
    codes = study.codes.filter(code=session.code)
    return LinkPanel(
        name=study.connection.name,
        parameters=parameters,
        addresses=dict(codes.values_list("code", "redirect_url")),
        ids=_ids(session, is_panel=is_panel),
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
    """What is wrong with an address to return to, or ""."""
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


def _ids(session: Session, *, is_panel: bool) -> dict[str, str]:
    stored = session.encrypted_participant_id
    return {
        "worker": decrypt(stored) if stored else "",
        "study": session.external_study_id,
        "session": session.submission_id if is_panel else "",
    }


def _read(parameters: Mapping[str, str], name: str) -> str:
    value = parameters.get(name, "").strip() if name else ""
    if len(value) > LONGEST_ID or not value.isprintable() or _is_unfilled(value):
        text = _("What the link says for %(name)s is not an id.") % {"name": name}
        raise NotVerified(text, code="bad_id")
    return value


def _is_unfilled(value: str) -> bool:
    """Whether the panel left its placeholder: {{%PID%}}, %SURVEY_CODE%."""
    return "{{" in value or "${" in value or (len(value) > 2 and value[0] == value[-1] == "%")
