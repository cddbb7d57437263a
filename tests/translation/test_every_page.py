"""Every page in a language that nobody speaks: what is not in its brackets was not marked."""

import json
import re
from decimal import Decimal
from html import unescape
from itertools import product

import pycountry
import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client
from django.urls import NoReverseMatch, reverse

from accounts import roles, teams
from annotation.access import set_study_role
from annotation.study_facts import SCORE
from console.glossary import COEFFICIENTS
from marketplace import models
from marketplace.money.transfers import deposit, make_batch
from marketplace.recruiting.studies import PRESETS, PROLIFIC, StudyValues, invite, open_study
from marketplace.urls import urlpatterns as marketplace_patterns
from retrieval.collections import create_collection
from tests.annotation.studies import doubt, rating_study, ticked_study
from tests.config.test_headers import SANDBOXED, names
from tests.console import filled, work
from tests.console.addresses import (
    ACTIONS_OF_A_STUDY,
    API_OF_A_STUDY,
    PAGES_OF_A_COLLECTION,
    PAGES_OF_A_STUDY,
    PARTS,
    SHOWN_OF_A_STUDY,
    SIGNED_IN,
    address,
)
from tests.marketplace.conftest import HIT, PASSWORD, submit
from tests.retrieval.collections import evaluated_collection
from tests.translation.pages import chart_titles, stored_texts, unmarked_in_text, unmarked_words
from work.models import Job
from work.registry import QUEUES

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db,
    pytest.mark.usefixtures("_pseudo_locale", "_immediate_tasks"),
]


def known_texts():
    """What a page may show as it is: texts of the database, names of countries, panels, queues
    and transports, references."""
    countries = [getattr(each, "common_name", each.name) for each in pycountry.countries]
    references = [term.reference for term in COEFFICIENTS.values()]
    users = get_user_model().objects.values_list("username", flat=True)
    payouts = [": ".join(method) for method in settings.MARKETPLACE_PAYOUT_METHODS.items()]
    panels = [preset.panel for preset in PRESETS.values()]
    names = [*QUEUES, *models.Transport.values, *panels]
    texts = {*names, *references, *countries, *stored_texts(), *users, *payouts}
    return sorted(texts, key=len, reverse=True)


def check(answer, where):
    """Nothing but data stands outside the brackets of an HTML page or of a chart."""
    if answer.get("Content-Type", "").startswith("application/json"):
        titles = chart_titles(json.loads(answer.content)) if answer.content else []
        unmarked = [text for text in titles if unmarked_in_text(text, known_texts())]
        assert not unmarked, (where, unmarked)
        return
    if not answer.get("Content-Type", "").startswith("text/html"):
        return
    page = answer.content.decode()
    unmarked = unmarked_words(page, []) and unmarked_words(page, known_texts())
    assert not unmarked, (where, answer.status_code, unmarked)
    assert answer.status_code >= 400 or not page.strip() or "⟦" in page, where


# A report, tables and runs are files.
FILES_OF_A_COLLECTION = {
    *("collection-file-content", "collection-download", "collection-table"),
    "collection-pool-file",
}
# The worker's page has a table of its own (hits/page_texts.py).
NOT_MARKED = {"protocol-preview", "try-item", "trial-page"}


@pytest.fixture
def worked_study(study):
    batch = filled.add_batch(study, round=2)
    filled.add_assignment(batch.hits.first(), problem="The answer is no XML.")
    doubt(study.items.first().submissions.first())
    return study


def test_the_consoles_pages_and_what_forms_refuse_and_confirm(client, researcher, worked_study):
    client.force_login(researcher)
    # A report is a file, written beforehand in the site's own language. Recruited batches have
    # pages of their own.
    files = {*NOT_MARKED, "report-file", "recruit-file"}
    for name in {*PAGES_OF_A_STUDY, *API_OF_A_STUDY, *SIGNED_IN} - files:
        check(client.get(address(name)), name)
    check(Client().get(reverse("console:login")), "login")
    check(Client().post(reverse("console:login"), {"username": "rosa", "password": "no"}), "login")
    check(client.get("/nowhere/"), "404")
    form = {"metric": "rouge1", "rule": "mean:appropriateness", "round": "1", "value": "5"}
    for sent in ({}, form | {"reason": "too fast"}):
        for name in ACTIONS_OF_A_STUDY:
            # Their pages are tried below; those of recruitment need a batch of their own.
            if name.startswith(("protocol-", "study-member", "study-invit", "give", "recruit-")):
                continue
            where = address(name)
            check(client.post(where, sent, follow=True), (name, sent))


@pytest.mark.parametrize("make", [rating_study, ticked_study])
def test_the_consoles_pages_of_a_study_at_its_beginning(client, researcher, make):
    client.force_login(researcher)
    check(client.get(reverse("console:studies")), "studies")
    slug = make(owner=researcher).slug
    for name in [*SHOWN_OF_A_STUDY, *API_OF_A_STUDY]:
        if name not in PARTS and name not in NOT_MARKED:
            check(client.get(address(name, slug)), (name, slug))


@pytest.mark.parametrize("page", ["agreement", "validation"])
def test_the_charts_of_the_console(client, researcher, worked_study, page):
    """Their texts come as JSON, and so pass by whoever reads the pages alone."""
    client.force_login(researcher)
    text = client.get(reverse(f"console:{page}", args=["mine"])).content.decode()
    charts = [unescape(where) for where in re.findall(r'data-chart="([^"]+)"', text)]
    assert len(charts) >= 3
    for where in charts:
        answer = client.get(where)
        assert chart_titles(answer.json()), where
        check(answer, where)


@pytest.mark.parametrize("state", [*Job.State.values, "retrying"])
def test_a_job_in_each_state(client, researcher, state):
    study = rating_study(owner=researcher)
    work.request_for_later(study=study, kind=SCORE, names=["rouge1"])
    job = Job.objects.get()
    is_retrying = state == "retrying"
    job.state = Job.State.QUEUED if is_retrying else state
    job.attempts, job.n_total, job.n_done = int(is_retrying), 20, 5
    job.message = "It came to this."
    job.started_at = job.finished_at = job.created_at
    job.save()
    client.force_login(researcher)
    check(client.get(reverse("console:work", args=[study.slug, job.pk])), state)


@pytest.fixture
def marketplace(mturk, requester, worker, busy_worker):
    """Work in every state, channels of both kinds, money in and out."""
    get_user_model().objects.create_user("olga", password=PASSWORD, is_staff=True)
    requester.users.add(get_user_model().objects.create_user("rita", password=PASSWORD))
    deposit(requester=requester, amount_usd=Decimal(10), reference="Invoice 7")
    recruited = mturk.create_hit(**HIT | {"Title": "For participants"})["HIT"]["HITTypeId"]
    hit_type = models.HitType.objects.get(public_id=recruited)
    values = StudyValues(name="Lab", kind="invite", completion_code="LAB-7")
    invite(study=open_study(requester=requester, hit_type=hit_type, values=values), labels=["P"])
    values = StudyValues(name="Prolific", kind="panel", completion_code="C1", **PROLIFIC)
    open_study(requester=requester, hit_type=hit_type, values=values)
    submit(worker, mturk.create_hit(**HIT)["HIT"]["HITId"])
    make_batch()


OBJECTS = {
    "requester_id": (models.Requester, "public_id"),
    "access_key_id": (models.AccessKey, "access_key_id"),
    "deposit_id": (models.Deposit, "public_id"),
    "batch_id": (models.PayoutBatch, "pk"),
    "hit_type_id": (models.HitType, "public_id"),
    "hit_id": (models.Hit, "public_id"),
    "assignment_id": (models.Assignment, "public_id"),
    "type_id": (models.QualificationType, "public_id"),
    "session_id": (models.Session, "public_id"),
    "request_id": (models.QualificationRequest, "public_id"),
    "connection_id": (models.RecruiterConnection, "public_id"),
}


def places():
    """Every address of the marketplace, with each object that it may name."""
    values = {
        name: list(model.objects.values_list(field, flat=True))
        for name, (model, field) in OBJECTS.items()
    }
    values["token"] = [
        *models.RecruitedStudy.objects.values_list("token", flat=True),
        *models.Invitation.objects.values_list("token", flat=True),
    ]
    values["name"] = ["participants"]
    for name, parts in names(marketplace_patterns):
        # A worker's own data are rows as they are stored, with the fields' names.
        if name.endswith("None") or name in {*SANDBOXED, "your_data_page"}:
            continue
        for chosen in product(*(values[part] for part in parts)):
            try:
                where = reverse(f"marketplace:{name}", kwargs=dict(zip(parts, chosen, strict=True)))
            except NoReverseMatch:
                continue
            yield name, where


@pytest.mark.parametrize("who", ["nobody", "ada", "rita", "olga"])
def test_the_marketplaces_pages_and_what_their_forms_refuse_and_confirm(marketplace, settings, who):
    settings.MARKETPLACE_REQUESTER_SIGN_UP = True
    client = Client()
    if who != "nobody":
        client.force_login(get_user_model().objects.get(username=who))
    for name, where in places():
        check(client.get(where), (name, who))
    for name, where in places():
        if name in ("requester_api", "external_submit"):
            continue
        client = Client()
        if who != "nobody":
            client.force_login(get_user_model().objects.get(username=who))
        for form in ({}, {"label": "Laptop", "labels": "Q", "reason": "12:30", "country": "CA"}):
            check(client.post(where, form, follow=True), (name, who, form))


def test_the_pages_of_collections(client, researcher):
    client.force_login(researcher)
    team = teams.create_team(name="Lab", owner=researcher)
    check(client.get(reverse("console:new-collection")), "new-collection")
    create_collection(name="Empty", team=team, actor=researcher)
    evaluated_collection(team, researcher)
    names = (one for one in PAGES_OF_A_COLLECTION if one not in FILES_OF_A_COLLECTION)
    for name in names:
        check(client.get(address(name)), name)
    for name in ("collection", "files", "evaluation", "trust", "machine", "reuse", "audit"):
        end = "" if name == "collection" else f"{name}/"
        check(client.get(f"/collections/empty/{end}"), (name, "empty"))
        check(client.post(f"/collections/tracks/{end}", {}), (name, "refused"))
    check(client.get(reverse("console:collections")), "collections")


def test_the_pages_of_accounts_and_teams(client, researcher):
    researcher.set_password(PASSWORD)
    researcher.save()
    team = teams.create_team(name="Lab", owner=researcher)
    study = rating_study(owner=researcher, team=team)
    colleague = get_user_model().objects.create_user("carl")
    teams.set_role(team=team, user=colleague, role=roles.Role.ANALYST, actor=researcher)
    set_study_role(study=study, user=colleague, role=roles.Role.ADJUDICATOR, actor=researcher)
    client.post(reverse("console:login"), {"username": "rosa", "password": PASSWORD})
    client.post("/account/again/?next=/account/", {"password": PASSWORD})
    addresses = ["/teams/", "/teams/lab/", "/teams/lab/audit-log/", "/account/password/reset/"]
    addresses += [f"/studies/{study.slug}/members/", "/account/password/reset/sent/"]
    addresses += ["/account/password/reset/1-x/", "/account/password/reset/done/"]
    addresses += [f"/account/{name}/" for name in ("email", "sessions", "again", "password")]
    addresses += [f"/account/second-factor/{name}" for name in ("", "set-up/")]
    for where in ["/account/", *addresses]:
        check(client.get(where), where)
    for where in ("/teams/lab/invite/", f"/studies/{study.slug}/members/invite/"):
        for form in ({}, {"email": "nina@example.org", "role": "analyst"}):
            check(client.post(where, form, follow=True), (where, form))
    invitation = client.post(
        "/teams/lab/invite/", {"email": "otto@example.org", "role": "analyst"}, follow=True
    )
    path = invitation.context["link"]["address"].removeprefix("http://127.0.0.1:8000")
    for browser in (client, Client(headers={"host": "localhost"})):
        check(browser.get(path, follow=True), "invitation")
        check(browser.post("/invitation/join/new/", {"username": "rosa"}), "new account")
    check(client.get("/invited/no-such/", follow=True), "void")
    where = reverse("account_change_password")
    check(client.get(where), where)
    form = {"oldpassword": "no", "password1": "short", "password2": "other"}
    check(client.post(where, form), where)
