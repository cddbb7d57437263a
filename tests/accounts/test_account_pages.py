import re

import pytest
from allauth.account.models import EmailAddress
from allauth.usersessions.models import UserSession
from django.core import mail
from django.core.management import call_command
from django.test import Client

from accounts import jobs, models
from accounts.enrolment import create_user, password_link
from tests.accounts.conftest import PASSWORD, sign_in
from work.execution import run_job
from work.models import Job

NEW = "another-winding-password"
RESET = "/account/password/reset/"
LINK = re.compile(r"http://127\.0\.0\.1:8000(/\S+)")


@pytest.fixture
def with_mail(settings):
    settings.SENDS_MAIL = True
    immediate = "django_tasks.backends.immediate.ImmediateBackend"
    settings.TASKS = {"default": {"BACKEND": immediate, "QUEUES": []}}


def give_password(browser, where):
    browser.post(f"/account/again/?next={where}", {"password": PASSWORD})


def address(user, email, *, verified):
    return EmailAddress.objects.create(user=user, email=email, verified=verified, primary=True)


def link_in(text):
    return LINK.search(text)[1]


def set_password(browser, link, password=NEW):
    form = browser.get(link, follow=True)
    return browser.post(form.request["PATH_INFO"], {"password1": password, "password2": password})


def test_the_pages_are_for_people_with_a_password_and_send_no_mail_without_a_server(mine):
    participant = Client()
    participant.force_login(create_user(username="panel", password=None))
    for page in ("", "email/", "password/", "sessions/", "second-factor/"):
        browsers = (Client(), mine, participant)
        statuses = [browser.get(f"/account/{page}").status_code for browser in browsers]
        assert statuses == [302, 200, 403]
    page = Client().get(RESET)
    assert 'name="email"' not in page.content.decode()
    assert not page.context["sends_mail"]
    assert Client().post(RESET, {"email": "rosa@example.org"}).status_code == 403


@pytest.mark.parametrize("has_mail", [False, True])
def test_an_address_is_added_by_who_gives_the_password_again(mine, rosa, has_mail, request):
    if has_mail:
        request.getfixturevalue("with_mail")
    form = {"email": "rosa@example.org", "action_add": ""}
    assert mine.post("/account/email/", form).url.startswith("/account/again/")
    assert not EmailAddress.objects.exists()
    give_password(mine, "/account/email/")
    mine.post("/account/email/", form)
    assert EmailAddress.objects.get(user=rosa).email == "rosa@example.org"
    assert [message.to for message in mail.outbox] == [["rosa@example.org"]] * has_mail
    for message in mail.outbox:
        link = link_in(message.body)
        mine.get(link)
        assert not EmailAddress.objects.get(user=rosa).verified
        mine.post(link)
    assert EmailAddress.objects.get(user=rosa).verified == has_mail


def test_nobody_learns_whose_address_another_is(mine, rosa, with_mail):
    address(create_user(username="carl", password=PASSWORD), "carl@example.org", verified=True)
    give_password(mine, "/account/email/")
    pages = []
    for name in ("carl", "nobody"):
        form = {"email": f"{name}@example.org", "action_add": ""}
        page = mine.post("/account/email/", form, follow=True)
        pages.append(re.sub(rf"{name}|value=\S+|nonce=\S+", "", page.content.decode()))
        EmailAddress.objects.filter(user=rosa).delete()
    assert pages[0] == pages[1]
    # Another's confirmed address cannot be confirmed again.
    mine.post("/account/email/", {"email": "carl@example.org", "action_add": ""})
    for message in mail.outbox:
        if "carl@example.org" in message.to and (link := LINK.search(message.body)):
            mine.post(link[1])
    assert not EmailAddress.objects.filter(user=rosa, verified=True).exists()


def test_mail_waits_for_a_server_that_is_away(mine, rosa, with_mail, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    jobs.send_later(subject="Hello", body="A link.", to="rosa@example.org")
    job = Job.objects.get(kind="send_mail")
    assert job.state == "queued"
    assert "ConnectionRefusedError" in job.message
    assert "A link" not in str(job.arguments)
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    run_job(job.pk)
    job.refresh_from_db()
    assert (job.state, job.arguments) == ("done", {})
    assert [message.to for message in mail.outbox] == [["rosa@example.org"]]


def test_a_forgotten_password_is_replaced_by_a_link_in_a_mail(rosa, with_mail):
    address(rosa, "rosa@example.org", verified=True)
    elsewhere = Client()
    sign_in(browser=elsewhere)
    Client().post(RESET, {"email": "Rosa@example.org"}, headers={"host": "localhost"})
    (message,) = mail.outbox
    link = link_in(message.body)
    assert set_password(Client(), link).status_code == 302
    assert sign_in(password=NEW)
    assert not sign_in()
    assert elsewhere.get("/").status_code == 302
    # The link holds no longer.
    assert Client().get(link, follow=True).context["token_fail"]


def test_a_link_goes_only_to_a_confirmed_address(rosa, with_mail):
    mine = address(rosa, "rosa@example.org", verified=False)
    Client().post(RESET, {"email": "rosa@example.org"})
    assert not mail.outbox
    mine.verified = True
    mine.save()
    names = ("rosa", "nobody")
    answers = [
        Client().post(RESET, {"email": f"{name}@example.org"}, follow=True) for name in names
    ]
    assert answers[0].redirect_chain == answers[1].redirect_chain
    assert answers[0].content == answers[1].content
    # Links are not asked for without end.
    statuses = [Client().post(RESET, {"email": "rosa@example.org"}).status_code for _ in range(4)]
    assert statuses == [302] * 3 + [429]


@pytest.mark.parametrize("change", ["of_another", "late"])
def test_a_link_that_does_not_hold_sets_no_password(rosa, change, settings):
    carl = create_user(username="carl", password=PASSWORD)
    link = password_link(rosa).removeprefix("http://127.0.0.1:8000")
    if change == "of_another":
        key = password_link(carl).rsplit("/reset/", 1)[1].split("-", 1)[0]
        link = re.sub(r"reset/[0-9A-Za-z]+-", f"reset/{key}-", link)
    if change == "late":
        settings.PASSWORD_RESET_TIMEOUT = -1
    before = models.User.objects.values_list("password", flat=True).order_by("pk")
    stored = list(before)
    assert Client().get(link, follow=True).context["token_fail"]
    assert list(before.all()) == stored


def test_sessions_are_listed_and_ended_by_their_own_person(mine, rosa):
    phone, others = Client(HTTP_USER_AGENT="a phone"), [Client(), Client()]
    assert all(sign_in(browser=browser) for browser in (phone, *others))
    assert "a phone" in mine.get("/account/sessions/").content.decode()
    session = UserSession.objects.get(user_agent="a phone")
    mine.post(f"/account/sessions/{session.pk}/end/")
    assert (phone.get("/").status_code, mine.get("/").status_code) == (302, 200)
    mine.post("/account/sessions/")
    assert [browser.get("/").status_code for browser in (mine, *others)] == [200, 302, 302]
    create_user(username="carl", password=PASSWORD)
    carl = Client()
    assert sign_in("carl", browser=carl)
    session = UserSession.objects.get(user__username="carl")
    assert mine.post(f"/account/sessions/{session.pk}/end/").status_code == 404
    assert carl.get("/").status_code == 200


def test_the_first_owner_sets_a_password_by_the_link_that_the_command_prints(db, capsys):
    call_command("create_owner", "ada", "--email", "ada@example.org", "--team", "Dialogue Lab")
    output = capsys.readouterr().out
    assert "dialogue-lab" in output
    assert not sign_in("ada")
    set_password(Client(), link_in(output))
    assert sign_in("ada", NEW)
