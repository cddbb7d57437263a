"""Every address of the site × everybody who may ask for it, by each method.

The addresses come from the URL configuration: one without a line in `addresses.py` fails.
"""

import re
from contextlib import suppress
from io import BytesIO
from itertools import product
from zipfile import ZipFile

import pandas as pd
import pytest
from django.conf import settings
from django.db import transaction
from django.test import Client, override_settings
from django.urls import NoReverseMatch, Resolver404, resolve, reverse
from django.utils import timezone

from accounts import roles
from annotation.models import Adjudication, Candidate, Submission
from annotation.protocols import documents, versions
from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import COLLECT, LABEL, RESULTS, REVIEW, SCORE
from annotation.study_files import study_downloads
from console.registrations import needed_to_control
from hits.models import DraftDecision
from marketplace.people.enrolment import issue_access_key
from tests.annotation.studies import doubt, rating_study
from tests.console import addresses, work
from tests.console.addresses import P, address, all_names, lines
from tests.console.api.conftest import program_of
from tests.console.api.operations import OF_A_STUDY, address as api_address
from tests.console.conftest import PASSWORD, browser
from tests.console.team_study import ASSIGNMENT_ID, WORKER_ID
from tests.stored_changes import changed_tables
from work.models import Job

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("_immediate_tasks")]

ROLES = {role.value: roles.PERMISSIONS[role] for role in roles.Role}
STRANGERS = ("other_team", "worker", "operator")
# What the forms of the actions have, all in one.
FORM = {"action": "approve", "text": "", "metric": "rouge1", "rule": "mean:appropriateness"}
FORM |= {"round": "1", "value": "5", "reason": "too fast", "team": "lab"}
# Blind roles do not see that collections and experiments exist.
HIDDEN_FROM_BLIND = ("collection", "experiment", "recommender", "catalogue")


def status_of(client, where, *, is_action):
    with transaction.atomic():
        answer = client.post(where, {"team": "lab"}) if is_action else client.get(where)
        transaction.set_rollback(True)
    return int(answer.status_code)


def content_of(answer):
    return unpacked(b"".join(answer.streaming_content) if answer.streaming else answer.content)


def unpacked(content):
    if content.startswith(b"PK"):
        with ZipFile(BytesIO(content)) as archive:
            return b"".join(unpacked(archive.read(name)) for name in archive.namelist())
    if content.startswith(b"PAR1"):
        return pd.read_parquet(BytesIO(content)).to_csv().encode()
    return content


def test_every_address_has_a_line():
    console = addresses.SIGNED_IN | addresses.OF_UPLOADS | addresses.OPEN | addresses.LISTS
    console = console.union(*addresses.PAGES, *addresses.ACTIONS, addresses.PAGES_OF_DIALOGUES)
    names = {f"console:{name}" for name in console}
    names |= {f"marketplace:{name}" for name in addresses.MARKETPLACE}
    assert set(all_names()) == names | addresses.ACCOUNT | addresses.OTHERS


# Who may open what.


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_a_role_opens_what_it_may_and_nothing_else(things, users, role):
    client, wrong = browser(users[role]), []
    for name, where, permission, is_action in lines():
        status = status_of(client, where, is_action=is_action)
        # Of what is not there by number, nobody hears whether they might.
        by_number = name.endswith("-revoke") or name in (
            *("review-reason-delete", "review-answer", "comment-edit", "comment-delete"),
        )
        if name.startswith(HIDDEN_FROM_BLIND) and P.VIEW_SYSTEMS not in ROLES[role]:
            is_right = status == 404
        elif permission not in ROLES[role]:
            is_right = status == 403
        else:
            is_right = status < 400 or status == 422 or (by_number and status == 404)
        if not is_right:
            wrong.append((name, status))
    assert wrong == [], sorted(wrong)


@pytest.mark.slow
@pytest.mark.parametrize("person", STRANGERS)
def test_to_strangers_nothing_of_a_team_is_there(things, users, person):
    client = browser(users[person])
    statuses = {
        name: status_of(client, where, is_action=is_action) for name, where, _, is_action in lines()
    }
    assert set(statuses.values()) == {404}, statuses
    for name, named in (("collections", b"Tracks"), ("experiments", b"Shoes")):
        assert named not in client.get(address(name)).content
    assert b"GRU-SL" not in client.get(address("recommenders")).content


@pytest.mark.slow
def test_nobody_gets_in_without_signing_in_by_any_method(things):
    client, before = browser(None), stored_work()
    # test_dialogue_studies.py has a study of dialogues.
    for name in [
        *addresses.SLUGS.keys() - addresses.PAGES_OF_DIALOGUES.keys(),
        *addresses.SIGNED_IN,
        *addresses.LISTS,
        "join",
        "logout",
    ]:
        where = address(name)
        for method in ("get", "head", "post", "put", "delete"):
            answer = getattr(client, method)(where)
            if name.startswith("api-") or name == "schema":
                assert answer.status_code == 401, (name, method)
            else:
                assert answer.status_code == 302, (name, method)
                assert answer.url == f"{reverse('console:login')}?next={where}"
        if name.startswith("api-"):
            assert client.get(address(name, format="json")).status_code == 401, name
    assert stored_work() == before


def stored_work():
    decided = (Adjudication.objects.count(), DraftDecision.objects.count())
    flagged = Submission.objects.flagged().count()
    return (*decided, flagged, *Job.objects.order_by("pk").values_list("state", "stop_requested"))


@pytest.mark.slow
def test_actions_must_be_posted_from_this_site_and_pages_take_no_other_method(study, users):
    owner = browser(users["owner"])
    elsewhere = Client(enforce_csrf_checks=True, headers={"host": "localhost"})
    elsewhere.force_login(users["owner"])
    before = stored_work()
    for name in addresses.ACTIONS_OF_A_STUDY:
        assert owner.get(address(name)).status_code == 405, name
        assert elsewhere.post(address(name), FORM).status_code == 403, name
    assert stored_work() == before
    for name, method in product(
        ["studies", *addresses.SHOWN_OF_A_STUDY, *addresses.API_OF_A_STUDY],
        ("post", "put", "patch", "delete"),
    ):
        assert getattr(owner, method)(address(name)).status_code == 405, (name, method)
    assert {owner.head(address(name)).status_code for name in addresses.SHOWN_OF_A_STUDY} == {200}


# Pages request the results that they show, as jobs, and the audit log names who has seen workers.
CHANGED_BY_GET = {
    *("work_job", "django_tasks_database_dbtaskresult"),
    *("accounts_auditentry", "accounts_auditchain"),
}


@pytest.mark.slow
def test_no_page_changes_data_by_get(things, study, users):
    doubt(study.items.first().submissions.first())
    places = [
        address(name)
        for name in [*addresses.SIGNED_IN, *addresses.LISTS, *addresses.ACTIONS_OF_A_STUDY]
    ]
    places += [address(name) for pages in addresses.PAGES for name in pages]
    for name in sorted(addresses.ACCOUNT):
        with suppress(NoReverseMatch):  # those that name a key or a token
            places.append(reverse(name))
    client = browser(users["owner"])
    with override_settings(TASKS=work.QUEUED):
        changes = {where: changed_tables(client.get, where) - CHANGED_BY_GET for where in places}
    assert {where: tables for where, tables in changes.items() if tables} == {}


@pytest.mark.slow
def test_a_superuser_sees_a_study_and_former_addresses_lead_to_it(study, superuser):
    client = browser(superuser)
    names = [*addresses.SHOWN_OF_A_STUDY, *addresses.API_OF_A_STUDY]
    statuses = {name: client.get(address(name)).status_code for name in names}
    assert statuses == dict.fromkeys(names, 200)
    for name in addresses.LEADING_ON:
        answer = client.get(address(name))
        assert answer.status_code in (301, 302), name
        assert client.get(answer.url).status_code == 200, name


@pytest.mark.slow
@pytest.mark.parametrize("page", ["studies", "api-study-list"])
def test_people_are_shown_their_own_studies(researcher, colleague, worker, superuser, page):
    for slug, owner in (("hers", researcher), ("his", colleague), ("nobodys", None)):
        rating_study(slug, owner=owner)
    lists = {}
    for user in (researcher, colleague, worker, superuser):
        text = browser(user).get(address(page)).content.decode()
        slugs = ("hers", "his", "nobodys")
        lists[user] = [one for one in slugs if f">{one}<" in text or f'"slug":"{one}"' in text]
        statuses = [browser(user).get(address("study", one)).status_code for one in slugs]
        assert [one for one, status in zip(slugs, statuses, strict=True) if status == 200] == lists[
            user
        ]
    assert list(lists.values()) == [["hers"], ["his"], [], ["hers", "his", "nobodys"]]


@pytest.mark.parametrize("person", [*ROLES, "other_team", "worker", "operator"])
def test_marketplace_pages_of_others_are_closed(users, person):
    requester = issue_access_key(name="Somebody", deposit_usd=None).requester
    client, places = browser(users[person]), []
    if person != "operator":
        names = ("operator_requesters", "operator_payouts", "operator_audit")
        places += [reverse(f"marketplace:{name}") for name in names]
        places += [
            reverse(f"marketplace:{name}", args=[requester.public_id])
            for name in ("operator_requester", "requester", "statement", "channels")
        ]
    if person in ("owner", "operator"):  # who are no workers
        names = ("profile", "dashboard", "earnings", "inbox", "qualifications")
        places += [reverse(f"marketplace:{name}") for name in names]
    assert {client.get(where).status_code for where in places} <= {302, 403, 404}


# Signing in and out.


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_who_signs_in_is_sent_where_they_were_going_on_this_site(client, researcher, is_elsewhere):
    where = "https://elsewhere.example/" if is_elsewhere else reverse("console:teams")
    form = {"username": "rosa", "password": PASSWORD, "next": where}
    answer = client.post(reverse("console:login"), form)
    assert answer.status_code == 302
    assert answer.url == (reverse("console:studies") if is_elsewhere else where)


def test_only_the_right_password_signs_in_until_one_signs_out(client, researcher, rosa):
    answer = client.post(reverse("console:login"), {"username": "rosa", "password": "guess"})
    assert answer.status_code == 200
    assert answer.context["form"].errors
    assert settings.SESSION_COOKIE_NAME not in client.cookies
    assert rosa.get(address("logout")).status_code == 405
    assert rosa.get(address("studies")).status_code == 200
    rosa.post(address("logout"))
    assert rosa.get(address("studies")).status_code == 302


# What pages and files say.


def led_to(page):
    """Where a page's links and forms lead within the study or its team, and what that needs."""
    known = (
        addresses.PAGES_OF_A_STUDY
        | addresses.ACTIONS_OF_A_STUDY
        | addresses.PAGES_OF_A_TEAM
        | addresses.ACTIONS_OF_A_TEAM
    )
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
        job = work.request_for_later(study=study, kind=kind, names=["rouge1"])
        Job.objects.filter(pk=job.pk).update(state=state, finished_at=timezone.now())
    client, wrong, n_links = browser(users[role]), [], 0
    for name in addresses.PAGES_OF_A_STUDY:
        answer = client.get(address(name))
        if answer.status_code != 200 or "text/html" not in answer["Content-Type"]:
            continue
        links = list(led_to(b"".join(answer).decode()))
        n_links += len(links)
        wrong += [(name, where) for _, where, needed in links if not ROLES[role].issuperset(needed)]
    assert n_links > 100
    assert wrong == [], sorted(wrong)


def places_of_a_study():
    pages = [address(name) for name in [*addresses.PAGES_OF_A_STUDY, *addresses.API_OF_A_STUDY]]
    return pages + [reverse("console:download", args=["mine", name]) for name in study_downloads()]


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_no_answer_names_a_system_to_who_may_not_view_systems(study, users, role):
    names = {"alpha": "quokka", "beta": "wombat"}
    for before, after in names.items():
        Candidate.objects.filter(item__study=study, key=before).update(key=after, system=after)
    find_study_kind(RESULTS).compute_now(study)
    clients = [browser(users[role]), program_of(users[role], *roles.Scope)]
    pages = [*places_of_a_study(), address("studies"), address("team")]
    pages += [address("search") + f"?q={name}" for name in names.values()]
    pages += [address("disagreement") + "?q=quokka"]
    api = [api_address(name, "mine") for name, method in OF_A_STUDY if method == "get"]
    found = set()
    for client, where in [(clients[0], where) for where in pages] + list(product(clients, api)):
        answer = client.get(where)
        read = content_of(answer).decode(errors="replace") + str(answer.headers)
        # The words that were searched for are in the search's own form.
        read = read.replace('value="quokka"', "").replace('value="wombat"', "")
        read = re.sub(r"“(quokka|wombat)”", "", read)
        if "quokka" in read or "wombat" in read:
            found.add(where)
    assert bool(found) == (P.VIEW_SYSTEMS in ROLES[role]), sorted(found)


def test_blind_roles_find_no_collection_and_candidates_in_no_systems_order(study, users, things):
    client = browser(users["adjudicator"])
    where = reverse("console:api:items", args=["mine"])
    rows = [row["candidates"] for row in client.get(where).json()["results"]]
    assert {each["position"] for row in rows for each in row} == {None}
    for item, row in zip(study.items.all(), rows, strict=True):
        ordered = item.candidates.order_by("blind_key").values_list("pk", flat=True)
        assert [each["id"] for each in row] == list(ordered)
    assert b"Tracks" not in client.get(address("collections")).content


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("role", ["adjudicator", "auditor"])
def test_protocols_name_candidates_by_key_to_who_may_view_systems(study, users, role, is_frozen):
    Candidate.objects.filter(item__study=study, key="alpha").update(key="quokka", system="quokka")
    case = {"source_item": "d1", "source_candidate": "quokka", "value": 90}
    candidates = [{"candidate": "quokka", "scores": {"appropriateness": 90}}]
    if not is_frozen:
        candidates.append({"candidate": "numbat", "scores": {"appropriateness": 9}})
    values = documents.plain_document(versions.current_document(study)) | {
        "checks": [{"kind": "gold", "share": 1, "cases": [case]}],
        "qualifications": {
            "practice": {"reward_usd": 0, "items": [{"item": "d0", "candidates": candidates}]}
        },
    }
    number = versions.save_draft(study=study, document=documents.read_document(values)).number
    if is_frozen:
        versions.freeze(study=study)
    client, page = browser(users[role]), address("protocol")
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
@pytest.mark.parametrize("role", ["analyst", "adjudicator", "auditor", "researcher"])
def test_only_who_may_know_workers_reads_their_names(study, users, role):
    client, found = browser(users[role]), set()
    for where in places_of_a_study():
        content = content_of(client.get(where))
        found |= {name for name in (WORKER_ID, ASSIGNMENT_ID) if name.encode() in content}
    assert found == ({WORKER_ID, ASSIGNMENT_ID} if role == "researcher" else set())


@pytest.mark.parametrize("role", [roles.Role.AUDITOR, roles.Role.ANALYST])
def test_who_views_a_result_takes_its_charts_data_and_who_exports_rows(things, users, role):
    client = browser(users[role.value])
    page = client.get(address("collection-evaluation")).content.decode()
    data = "/collections/tracks/evaluation/topics.csv/picture/"
    assert f'href="{data}?' in page
    for form in ("csv", "json", "svg"):
        assert client.get(data.replace("topics.csv", f"topics.{form}")).status_code == 200
    may_export = P.EXPORT in roles.PERMISSIONS[role]
    assert ("/evaluation/means.csv" in page) is may_export
    for name in ("means.csv", "topics.csv", "evaluation.json"):
        answer = client.get(f"/collections/tracks/evaluation/{name}")
        assert answer.status_code == (200 if may_export else 403)
