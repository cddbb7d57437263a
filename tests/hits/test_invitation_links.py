"""Invitation links, from the Launch page to judgments: people without an account work through the
worker pages, up to their quota and unpaid. Everything crosses HTTP."""

import csv
import io
import json
import re
from decimal import Decimal
from urllib.parse import urlsplit

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse

from accounts import roles, teams
from accounts.models import AuditEntry, User
from annotation.access import give_to_team
from annotation.models import Judgment, Submission
from hits import collect, connections, drafts, exceptions, recruiter_api
from hits.invitation_links import follow_links, request_invitations
from hits.models import Batch, Hit, InvitedPerson, LinkStudy
from hits.pages.pricing import LaunchView
from hits.pages.todos import recruiting_decisions
from marketplace import models
from marketplace.money.reconciliation import store_audit
from tests.codes import codes_on, field_codes, refused
from tests.console.work import work_off
from tests.hits.work import answer_to

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def browser(ada):
    client = Client()
    client.force_login(ada)
    return client


@pytest.fixture
def team_study(study, ada, funded_site):
    """A study of a team whose account at this site's marketplace is empty."""
    study.owner = ada
    study.save()
    team = teams.create_team(name="Lab", owner=ada)
    give_to_team(study=study, team=team, actor=ada)
    connections.connect_this_site(team=team, name="Here", actor=ada)
    return study


@pytest.fixture
def batch(team_study, browser, ada):
    view = LaunchView(team_study, ada)
    form = {**view.form.data, "source": "links", "hits_per_person": "2", "how": "rest"}
    form |= {"max_assignments": "2", "total": "0.00"}
    form = {name: "" if value is None else value for name, value in form.items()}
    page = browser.get(reverse("console:launch", args=[team_study.slug]), form)
    form["offer"] = page.context["view"].offer
    work_off()
    answer = browser.post(reverse("console:publish", args=[team_study.slug]), form)
    assert answer.status_code == 302, [one.message for one in answer.context["view"].faults]
    work_off()
    return Batch.objects.get()


def address(batch, name="batch", *more):
    return reverse(f"console:{name}", args=[batch.study.slug, batch.pk, *more])


def press(browser, batch, action, **form):
    answer = browser.post(address(batch, "batch-links"), {"action": action} | form)
    assert answer.status_code == 302
    work_off()


def invite(browser, batch, *names):
    press(browser, batch, "invite", names="\n".join(names))
    return [InvitedPerson.objects.get(name=name) for name in names]


def revoke(browser, person):
    where = address(person.study.batch, "batch-link-revoke", person.pk)
    assert browser.post(where).status_code == 302
    work_off()


def come(link, browser=None):
    browser = browser or Client()
    return browser, browser.post(urlsplit(link).path)


def work(browser, times):
    for _ in range(times):
        page = browser.get("/worker/study/", follow=True).content.decode()
        held = re.search("/worker/assignments/([A-Z0-9]+)/", page)[1]
        assert browser.get(f"/worker/assignments/{held}/").status_code == 200
        submit(held)


def submit(held):
    hit = Hit.objects.get(hit_id=models.Assignment.objects.get(public_id=held).hit.public_id)
    answer = json.dumps(answer_to(hit, {"alpha": 70, "beta": 20}))
    return Client().post("/mturk/externalSubmit", {"assignmentId": held, "answer": answer})


def statuses(browser, batch):
    rows = browser.get(address(batch)).context["links"].rows
    return {row.person.name: (row.status.code, row.person.n_done) for row in rows}


def look(batch):
    follow_links(LinkStudy.objects.select_related("batch__connection").get(batch=batch))


def matters(batch):
    return [one.message.code for _b, one in recruiting_decisions([batch.study_id], [batch])]


def test_an_invited_person_without_an_account_judges_under_a_pseudonym(batch, browser):
    assert (batch.is_invited, batch.is_recruited, batch.reward_usd) == (True, True, 0)
    assert (batch.max_per_worker, matters(batch)) == (2, ["batch_without_study"])
    ann, bob = invite(browser, batch, "Ann", "bob@example.org")
    assert (ann.link != bob.link, matters(batch)) == (True, [])
    page = Client().get(urlsplit(ann.link).path).content.decode()
    assert "$" not in page
    work(come(ann.link)[0], 2)
    collect.collect_batch(batch=batch, client=connections.client_of(batch.connection))
    look(batch)
    assert statuses(browser, batch) == {"Ann": ("finished", 2), "bob@example.org": ("unopened", 0)}
    [pseudonym] = {one.annotator.pseudonym for one in Submission.objects.all()}
    [row, _bob] = csv.DictReader(
        io.StringIO(browser.get(address(batch, "batch-links-file")).content.decode())
    )
    assert (row["name"], row["annotator"], row["hits_done"]) == ("Ann", pseudonym, "2")
    assert (Judgment.objects.count(), "Ann" in pseudonym) == (4, False)
    # Nothing is held, paid or owed.
    assert not models.LedgerTransaction.objects.exists()
    assert not store_audit().problems
    assert set(models.Assignment.objects.values_list("reward_usd", "fee_usd")) == {(0, 0)}


def test_one_person_does_no_more_than_the_quota_by_any_browser(batch, browser):
    [ann] = invite(browser, batch, "Ann")
    first, second = come(ann.link)[0], come(ann.link)[0]
    work(first, 1)
    work(second, 1)
    for one in (first, second, Client()):
        come(ann.link, one)
        page = one.get("/worker/study/", follow=True)
        assert page.context["session"].outcome == "completed"
    assert (models.WorkerAccount.objects.count(), models.Session.objects.count()) == (1, 1)
    assert models.Assignment.objects.handed_in().count() == 2


def test_a_revoked_link_refuses_and_frees_what_was_reserved(batch, browser):
    ann, bob = invite(browser, batch, "Ann", "Bob")
    at_work = come(ann.link)[0]
    work(at_work, 1)
    [held] = models.Assignment.objects.filter(status="Accepted").values_list("public_id", flat=True)
    revoke(browser, ann)
    for one in (at_work, Client()):
        assert come(ann.link, one)[1].status_code == 410
    submit(held)
    assert models.Assignment.objects.get(public_id=held).status == "Returned"
    assert at_work.get("/worker/study/", follow=True).context["is_revoked"]
    assert statuses(browser, batch) == {"Ann": ("revoked", 1), "Bob": ("unopened", 0)}
    text = browser.get(address(batch)).content.decode()
    assert (ann.link in text, bob.link in text) == (False, True)
    work(come(bob.link)[0], 2)
    # The same name can have a new link.
    invite_again = {"names": "Ann"}
    press(browser, batch, "invite", **invite_again)
    new = InvitedPerson.objects.get(name="Ann", revoked_at=None)
    assert (new.link != ann.link, come(new.link)[1].status_code) == (True, 302)


def test_the_shared_link_gives_codes_and_can_be_revoked_and_closed(batch, browser):
    [ann] = invite(browser, batch, "Ann")
    token = models.RecruitedStudy.objects.get().token
    assert come(f"/join/{token}/")[1].status_code == 410
    press(browser, batch, "share")
    shared = LinkStudy.objects.get().shared_link
    first = come(shared)[0]
    work(first, 1)
    come(shared)
    look(batch)
    rows = browser.get(address(batch)).context["links"].rows
    assert [(row.person.name, row.status.code) for row in rows[1:]] == [("", "started")] * 2
    press(browser, batch, "unshare")
    assert come(shared)[1].status_code == 410
    # Who has begun finishes; links of single people still let in.
    work(come(shared, first)[0], 1)
    press(browser, batch, "close")
    assert come(ann.link)[1].status_code == 410
    assert matters(batch) == ["batch_without_study"]
    press(browser, batch, "open")
    assert come(ann.link)[1].status_code == 302


def test_a_name_has_one_link_however_often_it_is_asked_for(batch, browser, ada, monkeypatch):
    [ann] = invite(browser, batch, "Ann")
    with refused(exceptions.RecruitingRefused, "invited_already"):
        request_invitations(batch=batch, names=["Ann"], actor=ada)
    press(browser, batch, "invite", names="Ann\n Cy \nCy")
    assert models.Invitation.objects.count() == 2
    # An answer that was lost: the links are there, and are found by the names.
    InvitedPerson.objects.filter(name="Cy").update(number=None, link="")
    look(batch)
    assert (models.Invitation.objects.count(), InvitedPerson.objects.count()) == (2, 2)
    assert InvitedPerson.objects.get(name="Cy").link
    ann.refresh_from_db()
    assert ann.number
    details = AuditEntry.objects.filter(action="links.invite").values_list("details", flat=True)
    assert "Ann" not in json.dumps(list(details))


def test_who_may_not_spend_sees_neither_names_nor_links(batch, browser, ada):
    [ann] = invite(browser, batch, "Ann Example")
    reviewer = User.objects.create_user("rex")
    teams.set_role(team=batch.study.team, user=reviewer, role=roles.Role.ANALYST, actor=ada)
    theirs = Client()
    theirs.force_login(reviewer)
    text = theirs.get(address(batch)).content.decode()
    assert ("Ann Example" in text, ann.link in text) == (False, False)
    assert theirs.get(address(batch, "batch-links-file")).status_code == 403


def test_names_are_checked_at_their_field(batch, browser):
    for names, code in (("", "required"), ("x" * 101, "long_name"), ("a\n" * 1, "")):
        answer = browser.post(address(batch, "batch-links"), {"action": "invite", "names": names})
        if code:
            assert field_codes(answer.context["links"].refused_form) == {"names": [code]}
    again = browser.post(address(batch, "batch-links"), {"action": "invite", "names": "a"})
    assert "invited_already" in codes_on(again.content.decode())


def test_a_launch_by_links_needs_a_quota_and_no_recruiter(team_study, ada):
    data = {**LaunchView(team_study, ada).form.data, "source": "links"}
    view = LaunchView(team_study, ada, data | {"hits_per_person": ""})
    assert field_codes(view.form) == {"hits_per_person": ["required"]}
    view = LaunchView(team_study, ada, data | {"hits_per_person": "2", "reward_usd": "0.50"})
    assert (view.draft.reward_usd, view.cost.total_usd, view.wage) == (0, 0, None)
    assert [one for one in view.faults if one.field == "connection"] == []
    again = LaunchView(team_study, ada, again=None)
    assert again.form.data["source"] == ""
    with transaction.atomic(), pytest.raises(IntegrityError):
        Batch.objects.create(
            study=team_study, connection=view.draft.connection, reward_usd=0, is_invited=True
        )


def test_a_second_round_keeps_the_source(batch, ada):
    data = LaunchView(batch.study, ada, again=batch).form.data
    assert (data["source"], data["hits_per_person"]) == ("links", 2)


def test_nobody_who_was_invited_is_paid_here(batch, browser, ada):
    [ann] = invite(browser, batch, "Ann")
    work(come(ann.link)[0], 1)
    collect.collect_batch(batch=batch, client=connections.client_of(batch.connection))
    [assignment] = [one.assignment for one in Submission.objects.all()]
    of_work = {"reviewer": ada, "assignment": assignment}
    with refused(exceptions.DecisionRefused, "invited_unpaid"):
        drafts.draft_decision(**of_work, action="bonus", amount_usd=Decimal("0.50"), text="Thanks")
    # A short reason is enough to reject.
    drafts.draft_decision(**of_work, action="reject", text="Empty")


def test_links_that_are_no_web_addresses_are_refused(batch, browser, monkeypatch):
    answer = {"study": "S", "state": "active", "items": 2, "people": []}
    answer["shared_link"] = "javascript:alert(1)"
    monkeypatch.setattr(recruiter_api, "post", lambda *_args: answer)
    with pytest.raises(exceptions.MarketplaceFault):
        recruiter_api.exchange_links(batch.connection, "S", labels=[], revoked=[])
