"""Who may open which address; the addresses are those there are, whoever adds one."""

from collections.abc import Iterator
from itertools import product

import pytest
from django.conf import settings
from django.test import Client
from django.urls import URLPattern, URLResolver, reverse

from annotation.label_sets import Rule, make_label_set
from annotation.models import Adjudication, Candidate, Item, Submission
from annotation.study_jobs import SCORE
from console.results import AGREEMENT, compute
from console.urls import urlpatterns
from hits.models import Assignment, Batch, DraftDecision
from metrics.models import ScoringRequest
from tests.annotation.studies import rating_study
from tests.console.collection_addresses import COLLECTIONS, OF_A_COLLECTION
from tests.console.dialogue_addresses import NEW_DIALOGUES, OF_DIALOGUES
from tests.console.experiment_addresses import EXPERIMENTS, OF_AN_EXPERIMENT
from tests.console.filled import add_assignment, add_batch, scored_study, store_validation
from tests.console.work import request_for_later
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]

PAGES = [
    *("study", "items", "launch", "answers", "agreement", "annotators", "disagreement"),
    *("results", "search", "adjudication", "labels", "reasons", "validation"),
    *("report", "downloads", "members"),
    *("review", "review-send", "review-rules", "review-reasons"),
]
OF_A_STUDY = {
    **{page: {"slug": "mine"} for page in PAGES},
    "protocol": {"slug": "mine"},
    "protocol-preview": {"slug": "mine"},
    "try-item": {"slug": "mine", "item_id": 1},
    "item": {"slug": "mine", "item_id": 1},
    "batch": {"slug": "mine", "batch_id": 1},
    "agreement-picture": {"slug": "mine", "chart": "forest", "form": "json"},
    "validation-picture": {"slug": "mine", "chart": "forest", "form": "json"},
    "validation-table": {"slug": "mine", "name": "worst"},
    "report-file": {"slug": "mine", "name": "report.html"},
    "work": {"slug": "mine", "job_id": 1},
    "label-set": {"slug": "mine", "version": 1, "form": "csv"},
    "download": {"slug": "mine", "name": "judgments.csv"},
    "api-study-detail": {"slug": "mine"},
    "api-study-agreement": {"slug": "mine"},
    "api-study-validation": {"slug": "mine"},
    "api-study-disputes": {"slug": "mine"},
}
# Lead on to another page of the study.
LEADING_ON = {"former-publish": {"slug": "mine"}, "try": {"slug": "mine"}}
ACTIONS = {
    "publish": {"slug": "mine"},
    "launch-team": {"slug": "mine"},
    "launch-connect": {"slug": "mine"},
    "study-budget": {"slug": "mine"},
    "collect": {"slug": "mine"},
    "restore": {"slug": "mine"},
    "score": {"slug": "mine"},
    "label": {"slug": "mine"},
    "scoring-confirm": {"slug": "mine", "request_id": 1},
    "decision": {"slug": "mine", "candidate_id": 1},
    "comment-add": {"slug": "mine", "candidate_id": 1},
    "comment-edit": {"slug": "mine", "comment_id": 1},
    "comment-delete": {"slug": "mine", "comment_id": 1},
    "flag": {"slug": "mine", "submission_id": 1},
    "review-draft": {"slug": "mine", "assignment_id": 1},
    "review-appeal": {"slug": "mine", "assignment_id": 1},
    "review-note": {"slug": "mine", "assignment_id": 1},
    "review-clear": {"slug": "mine", "assignment_id": 1},
    "review-withdraw": {"slug": "mine", "assignment_id": 1},
    "review-reason-delete": {"slug": "mine", "reason_id": 1},
    **{
        name: {"slug": "mine"}
        for name in (
            *("review-undo", "review-sending", "review-retry", "review-rules-draft"),
            *("review-reason-add", "protocol-save", "protocol-yaml", "protocol-freeze"),
            *("protocol-begin", "protocol-discard"),
        )
    },
    "unflag": {"slug": "mine", "submission_id": 1},
    "stop": {"slug": "mine", "job_id": 1},
    "again": {"slug": "mine", "job_id": 1},
}
# What these do, and for whom, is in test_team_pages.py.
OF_TEAMS = {
    **{
        name: {"slug": "lab"}
        for name in ("team", "wage-floor", "audit-log", "audit-log-file", "invite", "team-tokens")
    },
    "team-token-revoke": {"slug": "lab", "token_id": 1},
    **{
        name: {"slug": "lab"}
        for name in ("connections", "connecting", "connect-site", "connect", "team-budget")
    },
    "connection-close": {"slug": "lab", "connection_id": 1},
    "recruiter-connect": {"slug": "lab"},
    "recruiter-disconnect": {"slug": "lab", "recruiter_id": 1},
    "judge-connections": {"slug": "lab"},
    "judge-connection-close": {"slug": "lab", "connection_id": 1},
    "invitation-revoke": {"slug": "lab", "invitation_id": 1},
    "member-role": {"slug": "lab", "member_id": 1},
    "member-remove": {"slug": "lab", "member_id": 1},
    "member-password": {"slug": "lab", "member_id": 1},
    "study-invite": {"slug": "mine"},
    "study-invitation-revoke": {"slug": "mine", "invitation_id": 1},
    "study-member-role": {"slug": "mine", "member_id": 1},
    "study-member-remove": {"slug": "mine", "member_id": 1},
    "give": {"slug": "mine"},
}
# Pages that ask first, and then do it; by role, and what they do, in test_batch_pages.py and
# test_archive.py.
ASKING_FIRST = {
    "batch-change": {"slug": "mine", "batch_id": 1, "name": "close"},
    "archive": {"slug": "mine"},
    "add-items": {"slug": "mine"},
    "add-scores": {"slug": "mine"},
    "scoring": {"slug": "mine"},
    "scoring-request": {"slug": "mine", "request_id": 1},
    "rename": {"slug": "mine"},
    "delete": {"slug": "mine"},
}
# What they do, and for whom, is in test_recruiting.py.
OF_RECRUITMENT = {
    "recruit-draft": {"slug": "mine", "batch_id": 1},
    "recruit-act": {"slug": "mine", "batch_id": 1, "recruitment_id": 1, "action": "stop"},
    "recruit-settle": {"slug": "mine", "batch_id": 1, "call_id": 1},
    "recruit-put-away": {"slug": "mine", "batch_id": 1, "call_id": 1},
    "recruit-file": {"slug": "mine", "batch_id": 1, "recruitment_id": 1, "name": "join"},
}
# Whose they are, and what they do, is in test_uploads.py.
UPLOAD = {"token": "00000000-0000-4000-8000-000000000000"}
OF_UPLOADS = {
    **dict.fromkeys(["upload", "upload-progress", "upload-read", "upload-map"], UPLOAD),
    **dict.fromkeys(["upload-import", "upload-discard", "upload-picture"], UPLOAD),
}
OF_ANYONE_SIGNED_IN = {
    "how-many": {},
    "how-many-pilot": {},
    "how-many-curve": {"form": "json"},
    "teams": {},
    "new-team": {},
    "new-study": {},
    "letter-keys": {},
    "join": {},
    "studies": {},
    "logout": {},
    "api-root": {},
    "api-study-list": {},
    "schema": {},
}
STORED = {
    "item_id": Item,
    "candidate_id": Candidate,
    "submission_id": Submission,
    "job_id": Job,
    "batch_id": Batch,
    "assignment_id": Assignment,
    "request_id": ScoringRequest,
}
# What the forms of the actions hold, all in one.
FORM = (
    {"action": "approve", "text": ""}
    | {"metric": "rouge1", "rule": "mean:appropriateness", "round": "1", "value": "5"}
    | {"reason": "too fast"}
)
PUBLIC = {
    "login": {},
    "picture": {"sha256": "0" * 64},
    "invitation": {"token": "x"},
    "accept": {},
    "join-anew": {},
    "trial-page": {"token": "x"},
    "trial-sent": {"token": "x"},
}
# Who may open them, and what they do, is in test_collection_roles.py and test_collections.py.
OF_COLLECTIONS = OF_A_COLLECTION | {name: {} for name in COLLECTIONS}
# So it is of experiments, in test_experiments.py.
OF_EXPERIMENTS = OF_AN_EXPERIMENT | {name: {} for name in EXPERIMENTS}
# And of studies of dialogues, in test_dialogue_studies.py.
OF_DIALOGUE_STUDIES = OF_DIALOGUES | {name: {} for name in NEW_DIALOGUES}
PRIVATE = (
    OF_A_STUDY
    | LEADING_ON
    | ACTIONS
    | OF_TEAMS
    | ASKING_FIRST
    | OF_RECRUITMENT
    | OF_UPLOADS
    | OF_COLLECTIONS
    | OF_EXPERIMENTS
    | OF_DIALOGUE_STUDIES
    | OF_ANYONE_SIGNED_IN
)


def names(patterns: list[URLPattern | URLResolver]) -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver) and pattern.namespace == "api":
            continue  # tests/console/api has every operation
        if isinstance(pattern, URLResolver):
            yield from names(pattern.url_patterns)
        else:
            yield pattern.name


def address(name, more=None):
    parts = (PRIVATE | PUBLIC)[name] | (more or {})
    for part, model in STORED.items():
        if part in parts:
            parts |= {part: model.objects.get_queryset().first().pk}
    return reverse(f"console:{name}", kwargs=parts)


def is_unchanged():
    """The study's one piece of work still waits, no other was asked for, nothing was decided or
    flagged."""
    is_queued = list(Job.objects.values_list("state", "stop_requested")) == [("queued", False)]
    has_no_decision = (
        Adjudication.objects.exists()
        or Submission.objects.flagged().exists()
        or DraftDecision.objects.exists()
    )
    return is_queued and not has_no_decision


@pytest.fixture
def study(researcher):
    row = scored_study("mine", owner=researcher)
    compute(row, AGREEMENT)
    store_validation(row)
    add_assignment(add_batch(row).hits.first())
    make_label_set(question=row.questions.get(), rule=Rule("mean"))
    ScoringRequest.objects.create(study=row, metric="rouge1")
    request_for_later(study=row, kind=SCORE, names=["rouge1"])
    return row


def test_these_tests_know_every_address():
    assert set(names(urlpatterns)) == set(PRIVATE | PUBLIC)


@pytest.mark.slow
def test_nothing_opens_without_signing_in(client, study):
    for name, method in product(PRIVATE, ["get", "head", "post", "put", "delete"]):
        answer = getattr(client, method)(address(name))
        if name.startswith("api-") or name == "schema":
            assert answer.status_code == 401, (name, method)
        else:
            assert answer.status_code == 302, (name, method)
            assert answer.url == f"{reverse('console:login')}?next={address(name)}"
        assert is_unchanged(), (name, method)


@pytest.mark.slow
def test_a_suffix_opens_nothing_either(client, study):
    names = [name for name in PRIVATE if name.startswith("api-")]
    statuses = {name: client.get(address(name, {"format": "json"})).status_code for name in names}
    assert statuses == dict.fromkeys(names, 401)


@pytest.mark.slow
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_person_who_signed_in_is_sent_where_they_were_going_on_this_site(
    client, study, researcher, elsewhere
):
    where = "https://elsewhere.example/" if elsewhere else address("study")
    form = {"username": "rosa", "password": "a-long-and-winding-password", "next": where}
    answer = client.post(reverse("console:login"), form)
    assert answer.status_code == 302
    assert answer.url == (reverse("console:studies") if elsewhere else where)


def test_a_wrong_password_signs_nobody_in(client, researcher):
    answer = client.post(reverse("console:login"), {"username": "rosa", "password": "guess"})
    assert answer.status_code == 200
    assert answer.context["form"].errors
    assert settings.SESSION_COOKIE_NAME not in client.cookies


def test_signing_out_ends_the_session(rosa):
    assert rosa.get(address("logout")).status_code == 405
    assert rosa.get(address("studies")).status_code == 200
    rosa.post(address("logout"))
    assert rosa.get(address("studies")).status_code == 302


@pytest.mark.slow
def test_the_owner_and_a_superuser_see_a_study(study, researcher, superuser, signed_in):
    for user in (researcher, superuser):
        browser = signed_in(user)
        statuses = {name: browser.get(address(name)).status_code for name in OF_A_STUDY}
        assert statuses == dict.fromkeys(OF_A_STUDY, 200), user


@pytest.mark.slow
def test_a_former_address_leads_to_a_page_of_the_same_study(rosa, study):
    for name in LEADING_ON:
        answer = rosa.get(address(name))
        assert answer.status_code in (301, 302), name
        assert rosa.get(answer.url).status_code == 200, name


@pytest.mark.slow
@pytest.mark.parametrize("person", ["colleague", "worker"])
def test_to_anyone_else_a_study_is_not_there(request, study, signed_in, person):
    browser = signed_in(request.getfixturevalue(person))
    names = [*OF_A_STUDY, *LEADING_ON]
    statuses = {name: browser.get(address(name)).status_code for name in names}
    assert statuses == dict.fromkeys(names, 404)
    for name in ACTIONS:
        assert browser.post(address(name), FORM).status_code == 404, name
        assert is_unchanged(), name


def test_a_study_without_an_owner_is_a_superusers(researcher, superuser, signed_in):
    rating_study("nobodys")
    where = reverse("console:study", args=["nobodys"])
    assert signed_in(researcher).get(where).status_code == 404
    assert signed_in(superuser).get(where).status_code == 200


@pytest.mark.slow
@pytest.mark.parametrize("page", ["studies", "api-study-list"])
def test_people_are_shown_their_own_studies(
    study, researcher, colleague, worker, superuser, signed_in, page
):
    rating_study("theirs", owner=colleague)
    lists = {
        user.username: {
            slug for slug in ("mine", "theirs") if f">{slug}<" in text or f'"slug":"{slug}"' in text
        }
        for user in (researcher, colleague, worker, superuser)
        for text in [signed_in(user).get(address(page)).content.decode()]
    }
    assert lists == {
        "rosa": {"mine"},
        "carl": {"theirs"},
        "ada": set(),
        "root": {"mine", "theirs"},
    }


@pytest.mark.slow
def test_what_sets_work_going_must_be_posted_from_this_site(rosa, study, researcher):
    elsewhere = Client(enforce_csrf_checks=True, headers={"host": "localhost"})
    elsewhere.force_login(researcher)
    for name in ACTIONS:
        assert rosa.get(address(name)).status_code == 405, name
        assert elsewhere.post(address(name), FORM).status_code == 403, name
        assert is_unchanged(), name


@pytest.mark.slow
def test_what_is_only_shown_takes_no_other_method(rosa, study):
    for name in ["studies", *OF_A_STUDY]:
        for method in ("post", "put", "patch", "delete"):
            assert getattr(rosa, method)(address(name)).status_code == 405, (name, method)
        assert rosa.head(address(name)).status_code == 200, name
