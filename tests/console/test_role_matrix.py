"""Every address of the site × everybody who may ask for it.

The addresses come from the URL configuration: one without a line here fails.
"""

import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import pandas as pd
import pytest
from django.db import transaction
from django.test import Client
from django.urls import Resolver404, URLPattern, URLResolver, get_resolver, resolve, reverse
from django.utils import timezone

from accounts.models import Membership, User
from accounts.roles import PERMISSIONS, Permission, Role, Scope
from annotation.models import Candidate, Item, Study, StudyMembership, Submission
from annotation.protocols.documents import plain_document, read_document
from annotation.protocols.versions import current_document, freeze, save_draft
from annotation.study_jobs import COLLECT, LABEL, REVIEW, SCORE
from console.downloads import DOWNLOADS
from console.job_permissions import needed_to_control
from console.results import RESULTS, compute
from hits.models import Assignment, Batch, Connection, Recruiter, RecruiterCall, Recruitment
from marketplace.people.enrolment import issue_access_key
from metrics.models import JudgeConnection, ScoringRequest
from tests.annotation.studies import rating_study
from tests.console.api.conftest import program_of
from tests.console.api.operations import OF_A_STUDY
from tests.console.api.operations import address as api_address
from tests.console.collection_addresses import COLLECTIONS, OF_A_COLLECTION
from tests.console.dialogue_addresses import NEW_DIALOGUES, OF_DIALOGUES
from tests.console.experiment_addresses import EXPERIMENTS, OF_AN_EXPERIMENT
from tests.console.team_study import ASSIGNMENT_ID, WORKER_ID
from tests.console.test_access import OF_ANYONE_SIGNED_IN
from tests.console.work import request_for_later
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]

P = Permission


def table(*rows: tuple[Permission, str]) -> dict[str, Permission]:
    """The permission that each of the named pages or actions needs."""
    return {name: permission for permission, names in rows for name in names.split()}


def words(text: str) -> set[str]:
    return set(text.split())


VIEWED = """
    study items item protocol protocol-preview try try-item launch answers batch agreement
    search annotators disagreement agreement-picture adjudication labels reasons
    work members former-publish"""
OF_SYSTEMS = """
    results validation validation-picture validation-table report report-file"""
# What a page of the study `mine` needs, and an action that is posted to it.
PAGES_OF_A_STUDY = table(
    (P.VIEW, VIEWED),
    (P.VIEW_SYSTEMS, OF_SYSTEMS),
    (P.EXPORT, "downloads download label-set"),
    (P.SPEND, "batch-change"),
    (P.EDIT, "archive add-items rename"),
    (P.ANALYSE, "add-scores scoring scoring-request"),
    (P.OWN, "delete recruit-file"),
    (P.REVIEW, "review review-send review-rules review-reasons"),
)
ACTIONS_OF_A_STUDY = table(
    (P.REVIEW, "review-draft review-note review-appeal review-undo review-retry review-clear"),
    (P.REVIEW, "review-withdraw review-rules-draft review-reason-add review-reason-delete"),
    (P.REVIEW, "review-sending flag unflag"),
    (P.EDIT, "protocol-save protocol-yaml protocol-freeze protocol-begin protocol-discard"),
    (P.EDIT, "collect restore"),
    (P.ADJUDICATE, "decision comment-add comment-edit comment-delete"),
    (P.ANALYSE, "label score scoring-confirm stop again"),
    (P.MANAGE, "study-invite study-invitation-revoke study-member-role study-member-remove"),
    (P.MANAGE, "study-budget launch-connect"),
    (P.OWN, "give launch-team"),
    (P.SPEND, "publish recruit-draft recruit-act recruit-settle recruit-put-away"),
)
PAGES_OF_A_TEAM = table(
    (P.VIEW, "team connecting"),
    (P.MANAGE, "team-tokens"),
    (P.VIEW_AUDIT_LOG, "audit-log audit-log-file"),
    (P.VIEW_MONEY, "connections judge-connections"),
)
ACTIONS_OF_A_TEAM = table(
    (P.MANAGE, "wage-floor team-budget connect connect-site connection-close recruiter-connect"),
    (P.MANAGE, "recruiter-disconnect judge-connection-close invite invitation-revoke"),
    (P.MANAGE, "team-token-revoke member-role member-password"),
    # Members may leave by themselves; who may remove another, test_team_pages.py says.
    (P.VIEW, "member-remove"),
)
API_OF_A_STUDY = table(
    (P.VIEW, "api-study-detail api-study-agreement api-study-disputes"),
    (P.VIEW_SYSTEMS, "api-study-validation"),
)
# A file's, by who may import into its team; test_uploads.py tries them in every role.
OF_UPLOADS = words("""
    upload upload-progress upload-read upload-map upload-import upload-discard upload-picture""")
SIGNED_IN = words("""
    studies teams new-team new-study api-root api-study-list schema how-many how-many-curve
    how-many-pilot""")
# Whose tests say what they do: sign-in, invitations by a secret link, pictures by their hash.
OPEN = words(
    "letter-keys login logout picture invitation accept join join-anew trial-page trial-sent"
)
ACCOUNT = words("""
    account account_login account_reauthenticate account_change_password account_reset_password
    account_reset_password_done account_reset_password_from_key
    account_reset_password_from_key_done account_email account_email_verification_sent
    account_confirm_email mfa_index mfa_authenticate mfa_reauthenticate mfa_activate_totp
    mfa_deactivate_totp mfa_view_recovery_codes mfa_generate_recovery_codes
    mfa_download_recovery_codes usersessions_list usersessions_end password_links api_tokens
    revoke_token""")
# The marketplace, by who may open it; its own tests say what each does.
WORKERS = words("""
    profile dashboard earnings inbox mark_read accept_next next_hit accept_hit assignment
    return_assignment submit_form auto_accept qualifications qualification qualification_test
    hand_in_test mturk_preview_and_accept appeal submitted draft report more_time your_data
    your_data_json your_data_page erase payout_method""")
REQUESTERS = words("""
    requester issue_key revoke_key statement channels channel invite close_channel channel_links
    hand_over_study participants_file set_more_time join_file ask_demographics demographics_file
    ways_back import_statuses""")
OPERATORS = words("""
    operator_requesters operator_requester reverse_deposit operator_payouts make_payouts
    export_payouts payouts_paid operator_audit operator_status""")
SIGNED_REQUESTS = words("""
    requester_api enrol_requester enrol_worker statement_of_hits appeals answer_appeal
    shared_devices webhook_secret recruiting_standing recruiting_connect recruiting_disconnect
    recruiting_draft recruiting_demographics recruiting_bonus recruiting_erase recruited_file
    recruiting_act recruiting_hand_over recruiting_sessions recruiting_settle recruiter_events
    shared_traits recruiting_decisions""")
MARKETPLACE_OPEN = words("""
    testing_clock testing_faults testing_sweep external_submit groups signup login logout group
    finish hit mturk_preview mturk_project arrive session leave_study your_study requester_index
    requester_login requester_logout requester_sign_up frame preview_frame privacy erased None""")
MARKETPLACE = WORKERS | REQUESTERS | OPERATORS | SIGNED_REQUESTS | MARKETPLACE_OPEN
# Of whoever signed in, and of no study: test_documentation_pages.py.
OTHERS = words("front_page healthz readyz metrics documentation documentation-page")

TABLES = (
    *(PAGES_OF_A_STUDY, ACTIONS_OF_A_STUDY, PAGES_OF_A_TEAM, ACTIONS_OF_A_TEAM),
    API_OF_A_STUDY,
)
ROLES = {role.value: PERMISSIONS[role] for role in Role}
STRANGERS = ("other_team", "worker", "operator")
# What the addresses name besides the study or the team.
NAMED_PARTS: list[tuple[str, dict[str, Any]]] = [
    ("item try-item", {"item_id": Item}),
    ("batch recruit-draft", {"batch_id": Batch}),
    ("batch-change", {"batch_id": Batch, "name": "close"}),
    ("recruit-act", {"batch_id": Batch, "recruitment_id": Recruitment, "action": "stop"}),
    ("recruit-file", {"batch_id": Batch, "recruitment_id": Recruitment, "name": "join"}),
    ("recruit-settle recruit-put-away", {"batch_id": Batch, "call_id": RecruiterCall}),
    ("recruiter-disconnect", {"recruiter_id": Recruiter}),
    ("agreement-picture validation-picture", {"chart": "forest", "form": "json"}),
    ("validation-table", {"name": "worst"}),
    ("report-file", {"name": "report.html"}),
    ("work stop again", {"job_id": Job}),
    ("label-set", {"version": 1, "form": "csv"}),
    ("download", {"name": "judgments.csv"}),
    ("review-draft review-note review-clear", {"assignment_id": Assignment}),
    ("review-withdraw review-appeal", {"assignment_id": Assignment}),
    ("review-reason-delete", {"reason_id": 1}),
    ("flag unflag", {"submission_id": Submission}),
    ("decision comment-add", {"candidate_id": Candidate}),
    ("comment-edit comment-delete", {"comment_id": 1}),
    ("connection-close", {"connection_id": Connection}),
    ("judge-connection-close", {"connection_id": JudgeConnection}),
    ("scoring-request scoring-confirm", {"request_id": ScoringRequest}),
    ("study-invitation-revoke invitation-revoke", {"invitation_id": 1}),
    ("study-member-role study-member-remove", {"member_id": StudyMembership}),
    ("team-token-revoke", {"token_id": 1}),
    ("member-role member-remove member-password", {"member_id": Membership}),
]
PARTS = {name: parts for names, parts in NAMED_PARTS for name in names.split()}


def all_names() -> Iterator[str]:
    def walk(patterns: Any, namespace: str = "") -> Iterator[str]:
        for pattern in patterns:
            if isinstance(pattern, URLResolver) and pattern.namespace == "api":
                continue  # tests/console/api has every operation
            if isinstance(pattern, URLResolver):
                inner = f"{pattern.namespace}:" if pattern.namespace else ""
                yield from walk(pattern.url_patterns, namespace + inner)
            elif isinstance(pattern, URLPattern):
                yield f"{namespace}{pattern.name}"

    return walk(get_resolver().url_patterns)


def address(name: str, slug: str) -> str:
    parts = {
        part: value.objects.order_by("pk").last().pk if isinstance(value, type) else value
        for part, value in PARTS.get(name, {}).items()
    }
    return reverse(f"console:{name}", kwargs={"slug": slug} | parts)


@pytest.fixture
def users(team_users: dict[str, User]) -> dict[str, User]:
    return team_users


@pytest.fixture
def study(team_study: Study) -> Study:
    return team_study


def browser(user: User | None) -> Client:
    client = Client(headers={"host": "localhost"})
    if user is not None:
        client.force_login(user)
    return client


def status_of(client: Client, name: str, where: str, *, is_action: bool) -> int:
    """The status; what an action did is taken back."""
    with transaction.atomic():
        answer = client.post(where, {"team": "lab"}) if is_action else client.get(where)
        transaction.set_rollback(True)
    return int(answer.status_code)


def lines(slug: str = "mine") -> Iterator[tuple[str, str, Permission, bool]]:
    """Name, address, what it needs, and whether it is posted to."""
    for names, owner, is_action in (
        (PAGES_OF_A_STUDY, slug, False),
        (API_OF_A_STUDY, slug, False),
        (ACTIONS_OF_A_STUDY, slug, True),
        (PAGES_OF_A_TEAM, "lab", False),
        (ACTIONS_OF_A_TEAM, "lab", True),
    ):
        for name, permission in names.items():
            yield name, address(name, owner), permission, is_action


def test_every_address_has_a_line():
    # Dialogues are tried in test_dialogue_studies.py, collections in test_collection_roles.py.
    console = SIGNED_IN | OF_UPLOADS | OPEN | COLLECTIONS | EXPERIMENTS | NEW_DIALOGUES
    console = console.union(*TABLES, OF_AN_EXPERIMENT, OF_DIALOGUES, OF_A_COLLECTION)
    names = {f"console:{name}" for name in console}
    names |= {f"marketplace:{name}" for name in MARKETPLACE}
    assert set(all_names()) == names | ACCOUNT | OTHERS


def led_to(page: str) -> Iterator[tuple[str, str, list[Permission]]]:
    """Where a page's links and forms lead within the study or its team, and what that needs."""
    known = PAGES_OF_A_STUDY | ACTIONS_OF_A_STUDY | PAGES_OF_A_TEAM | ACTIONS_OF_A_TEAM
    for where in set(re.findall(r'(?:href|action|hx-get|hx-post)="(/[^"?#]*)', page)):
        try:
            match = resolve(where)
        except Resolver404:
            continue  # a file of the site's own
        name = match.url_name
        if match.namespace != "console" or name not in known:
            continue
        if name in ("stop", "again"):
            job = Job.objects.get(pk=match.kwargs["job_id"])
            yield name, where, needed_to_control(job, resumes=name == "again")
        else:
            yield name, where, [known[name]]


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_no_page_leads_a_role_where_it_may_not_go(study, users, role):
    ended = ((COLLECT, "failed"), (SCORE, "stopped"), (LABEL, "failed"), (REVIEW, "failed"))
    for kind, state in ended:
        job = request_for_later(study=study, kind=kind, names=["rouge1"])
        Job.objects.filter(pk=job.pk).update(state=state, finished_at=timezone.now())
    client, wrong, n_links = browser(users[role]), [], 0
    for name in PAGES_OF_A_STUDY:
        answer = client.get(address(name, "mine"))
        if answer.status_code != 200 or "text/html" not in answer["Content-Type"]:
            continue
        links = list(led_to(b"".join(answer).decode()))
        n_links += len(links)
        wrong += [(name, where) for _, where, needed in links if not ROLES[role].issuperset(needed)]
    assert n_links > 100
    assert wrong == [], sorted(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_no_answer_names_a_system_to_who_may_not_view_systems(study, users, role):
    names = {"alpha": "quokka", "beta": "wombat"}
    for before, after in names.items():
        candidates = Candidate.objects.filter(item__study=study, key=before)
        candidates.update(key=after, system=after)
    compute(study, RESULTS)
    clients = [browser(users[role]), program_of(users[role], *Scope)]
    pages = [address(name, "mine") for name in [*PAGES_OF_A_STUDY, *API_OF_A_STUDY]]
    pages += [reverse("console:studies"), address("team", "lab")]
    pages += [address("search", "mine") + f"?q={name}" for name in names.values()]
    pages += [address("disagreement", "mine") + "?q=quokka"]
    api = [api_address(name, "mine") for name, method in OF_A_STUDY if method == "get"]
    files = [reverse("console:download", args=["mine", name]) for name in DOWNLOADS]
    found = set()
    for client, where in [(clients[0], where) for where in pages + files] + [
        (client, where) for client in clients for where in api
    ]:
        answer = client.get(where)
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        read = unpacked(content).decode(errors="replace") + str(answer.headers)
        # The words that were searched for are in the search's own form.
        read = read.replace('value="quokka"', "").replace('value="wombat"', "")
        read = re.sub(r"“(quokka|wombat)”", "", read)
        if "quokka" in read or "wombat" in read:
            found.add(where)
    assert bool(found) == (P.VIEW_SYSTEMS in ROLES[role]), sorted(found)


def test_candidates_are_in_no_systems_order_for_who_may_not_view_systems(study, users):
    client = browser(users["adjudicator"])
    where = reverse("console:api:items", args=["mine"])
    rows = [row["candidates"] for row in client.get(where).json()["results"]]
    assert {each["position"] for row in rows for each in row} == {None}
    for item, row in zip(study.items.all(), rows, strict=True):
        ordered = item.candidates.order_by("blind_key").values_list("pk", flat=True)
        assert [each["id"] for each in row] == list(ordered)


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("role", ["adjudicator", "auditor"])
def test_protocols_name_candidates_by_key_to_who_may_view_systems(study, users, role, is_frozen):
    Candidate.objects.filter(item__study=study, key="alpha").update(key="quokka", system="quokka")
    case = {"source_item": "d1", "source_candidate": "quokka", "value": 90}
    candidates = [{"candidate": "quokka", "scores": {"appropriateness": 90}}]
    if not is_frozen:
        candidates.append({"candidate": "numbat", "scores": {"appropriateness": 9}})
    values = plain_document(current_document(study)) | {
        "checks": [{"kind": "gold", "share": 1, "cases": [case]}],
        "qualifications": {
            "practice": {"reward_usd": 0, "items": [{"item": "d0", "candidates": candidates}]}
        },
    }
    number = save_draft(study=study, document=read_document(values)).number
    if is_frozen:
        freeze(study=study)
    client, page = browser(users[role]), address("protocol", "mine")
    api = reverse("console:api:protocol", args=["mine", number])
    for where in (page, f"{page}?tab=yaml", f"{page}?version={number}", api):
        content = client.get(where).content.decode()
        for name in ("quokka", "numbat") if not is_frozen else ("quokka",):
            assert (name in content) == (P.VIEW_SYSTEMS in ROLES[role]), where
    record = client.get(api).json()
    shown = Candidate.objects.get(item__study=study, item__key="d1", key="quokka")
    name = shown.name_for(ROLES[role])
    assert record["document"]["checks"][0]["cases"][0]["source_candidate"] == name
    assert name in record["yaml"]


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_a_role_opens_what_it_may_and_nothing_else(study, users, role):
    client, wrong = browser(users[role]), []
    for name, where, permission, is_action in lines():
        status = status_of(client, name, where, is_action=is_action)
        may = permission in ROLES[role]
        is_right = status not in (403, 404, 500) if may else status == 403
        # Of what is not there by number, nobody hears whether they might.
        by_number = name.endswith("-revoke") or name in (
            *("review-reason-delete", "comment-edit", "comment-delete"),
        )
        is_right |= by_number and status == (404 if may else 403)
        if not is_right:
            wrong.append((name, status))
    assert wrong == [], sorted(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("person", STRANGERS)
def test_to_strangers_a_teams_studies_are_not_there(study, users, person):
    client = browser(users[person])
    statuses = {
        name: status_of(client, name, where, is_action=is_action)
        for name, where, _, is_action in lines()
    }
    assert set(statuses.values()) == {404}, statuses


def test_nobody_gets_in_without_signing_in(study):
    client = browser(None)
    for name, where, _, is_action in lines():
        status = status_of(client, name, where, is_action=is_action)
        assert status == (401 if name.startswith("api-") else 302), name
    for name in SIGNED_IN:
        where = reverse(f"console:{name}", kwargs=OF_ANYONE_SIGNED_IN.get(name))
        assert client.get(where).status_code in (302, 401), name


def test_a_guest_of_one_study_sees_that_one_alone(study, users):
    team = study.team
    other = rating_study("other", owner=users["owner"], team=team)
    client = browser(User.objects.get(username="guest"))
    assert client.get(address("study", "mine")).status_code == 200
    assert client.get(address("study", other.slug)).status_code == 404
    assert client.get(address("team", team.slug)).status_code == 404


def unpacked(content: bytes) -> bytes:
    """What stands in a file that compresses its content."""
    if content.startswith(b"PK"):
        with ZipFile(BytesIO(content)) as archive:
            return b"".join(unpacked(archive.read(name)) for name in archive.namelist())
    if content.startswith(b"PAR1"):
        return pd.read_parquet(BytesIO(content)).to_csv().encode()
    return content


@pytest.mark.slow
@pytest.mark.parametrize("role", ["analyst", "adjudicator", "auditor"])
def test_no_page_export_or_answer_names_a_worker_to_who_may_not_know(study, users, role):
    client = browser(users[role])
    names = [*PAGES_OF_A_STUDY, *API_OF_A_STUDY]
    wheres = [address(name, "mine") for name in names]
    wheres += [
        reverse("console:download", kwargs={"slug": "mine", "name": name}) for name in DOWNLOADS
    ]
    for where in wheres:
        answer = client.get(where)
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        content = unpacked(content)
        assert WORKER_ID.encode() not in content, where
        assert ASSIGNMENT_ID.encode() not in content, where


def test_who_may_know_workers_does(study, users):
    client = browser(users["researcher"])
    assert WORKER_ID in client.get(address("answers", "mine")).content.decode()
    where = reverse("console:download", kwargs={"slug": "mine", "name": "submissions.csv"})
    assert ASSIGNMENT_ID in b"".join(client.get(where).streaming_content).decode()


@pytest.mark.parametrize("person", [*ROLES, "other_team", "worker", "operator"])
def test_marketplace_pages_of_others_are_closed(study, users, person):
    requester = issue_access_key(name="Somebody", deposit_usd=None).requester
    client, addresses = browser(users[person]), []
    if person != "operator":
        names = ("operator_requesters", "operator_payouts", "operator_audit")
        addresses += [reverse(f"marketplace:{name}") for name in names]
        addresses += [
            reverse(f"marketplace:{name}", args=[requester.public_id])
            for name in ("operator_requester", "requester", "statement", "channels")
        ]
    if person in ("owner", "operator"):  # who are no workers
        names = ("profile", "dashboard", "earnings", "inbox", "qualifications")
        addresses += [reverse(f"marketplace:{name}") for name in names]
    assert {client.get(where).status_code for where in addresses} <= {302, 403, 404}
