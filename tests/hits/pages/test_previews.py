import re
from datetime import timedelta

import pytest
from django.core import signing
from django.core.cache import cache
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import expect

from accounts.models import AuditEntry
from annotation.models import Candidate, Judgment, Submission
from hits import models, previews, questions
from hits.pages.protocol import SALT
from tests.accessibility import accessibility_problems
from tests.annotation.studies import rating_study
from tests.browsers import opened_page, rate_all, sign_in
from tests.console.conftest import PASSWORD
from tests.hits.samples import picture, picture_of

SYSTEMS = ("zephyr-7b", "orca-2")
PAGES = ("shared-preview", "shared-preview-page")


@pytest.fixture
def study(researcher):
    return rating_study("mine", owner=researcher, n_items=3, systems=SYSTEMS)


@pytest.fixture
def token(study, researcher):
    return previews.create_preview_link(study=study, actor=researcher)


def visit(token, name="shared-preview", method="get", **query):
    return getattr(Client(), method)(reverse(f"console:{name}", args=[token]), query)


def test_whoever_edits_makes_lists_and_revokes_links_in_the_audit_log(rosa, study):
    answer = rosa.post(reverse("console:preview-link", args=["mine"]), headers={"HX-Request": "1"})
    address = answer.context["address"]
    assert address in answer.content.decode()
    token = address.split("/")[-2]
    link = models.PreviewLink.objects.get()
    assert token not in str(vars(link))
    assert visit(token).status_code == 200
    page = rosa.get(reverse("console:protocol", args=["mine"]))
    assert [each.pk for each in page.context["preview_links"]] == [link.pk]
    assert token not in page.content.decode()
    revoke = reverse("console:preview-link-revoke", args=["mine", link.pk])
    for _ in range(2):
        assert rosa.post(revoke).status_code == 302
    assert visit(token).status_code == 410
    entries = AuditEntry.objects.filter(subject="mine").order_by("position")
    actions = [each.action for each in entries if "preview" in each.action]
    assert actions == ["study.preview_link", "study.preview_link_revoked"]
    other = rating_study("other", owner=study.owner, n_items=1)
    elsewhere = reverse("console:preview-link-revoke", args=[other.slug, link.pk])
    assert rosa.post(elsewhere).status_code == 404


@pytest.mark.parametrize("end", ["expired", "revoked", "deleted", "made_up"])
def test_a_link_that_is_not_active_shows_nothing(study, token, researcher, end):
    link = models.PreviewLink.objects.get()
    if end == "expired":
        models.PreviewLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    elif end == "revoked":
        previews.revoke_preview_link(link=link, actor=researcher)
    elif end == "deleted":
        study.delete()
        assert not models.PreviewLink.objects.exists()
    else:
        token = "made-up"
    answer = visit(token)
    assert (answer.status_code, 'data-code="inactive_link"' in answer.content.decode()) == (
        410,
        True,
    )
    assert visit(token, "shared-preview-page").status_code == 404
    assert visit(token, "shared-preview-sent", "post").status_code == 404


def test_it_shows_the_draft_of_this_studys_items_without_names_of_systems(study, token, researcher):
    rating_study("other", owner=researcher, n_items=2)
    Candidate.objects.filter(item__study=study).update(text="A response.")
    small, large = picture(1), picture_of(b"<svg/>" + b" " * questions.MAX_QUESTION_BYTES)
    study.items.filter(position=0).update(picture=small)
    study.items.filter(position=1).update(picture=large)
    keys = study.items.values_list("key", flat=True)
    hidden = re.compile(rf"\b({'|'.join([*SYSTEMS, study.slug, *keys])})\b")
    for number in (1, 2, 3):
        outside, page = (visit(token, name, item=number) for name in PAGES)
        assert f"Context {number - 1}" in page.content.decode()
        for answer in (outside, page):
            assert hidden.search(answer.content.decode()) is None
            assert "noindex" in answer["X-Robots-Tag"]
            assert "no-store" in answer["Cache-Control"]
            assert (answer["Referrer-Policy"], len(answer.cookies)) == ("no-referrer", 0)
    pictures = [visit(token, PAGES[1], item=n).content.decode() for n in (1, 2)]
    assert "data:image/svg+xml" in pictures[0]
    assert f"/pictures/{large.sha256}" in pictures[1]
    assert page["Content-Security-Policy"].startswith("sandbox allow-scripts")
    # Items are numbers within the study of the link: those of another study have no address.
    assert [visit(token, name, item=4).status_code for name in PAGES] == [404, 404]


def test_answers_are_not_read_and_pages_are_limited_by_network_address(settings, token):
    answer = visit(token, "shared-preview-sent", "post", answer="<b>not kept")
    assert 'data-code="not_stored"' in answer.content.decode()
    assert "not kept" not in answer.content.decode()
    assert not Submission.objects.exists()
    for name in PAGES:
        assert [visit(token, name, method).status_code for method in ("head", "post")] == [200, 405]
    assert visit(token, "shared-preview-sent").status_code == 405
    cache.clear()
    settings.ACCOUNT_RATE_LIMITS = settings.ACCOUNT_RATE_LIMITS | {"preview": "3/m/ip"}
    assert [visit(token, name).status_code for name in PAGES * 2] == [200, 200, 200, 429]
    assert visit("made-up").status_code == 429


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_guest_opens_a_copied_link_answers_and_reads_that_nothing_is_stored(
    chromium, live_server, study, width
):
    viewport = {"width": width, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        sign_in(page, "/login/", "rosa", PASSWORD)
        page.goto("/studies/mine/protocol/")
        page.locator("#preview-links > form button").click()
        address = page.locator("#preview-address").input_value()
        assert accessibility_problems(page, frames=False) == []
    path = "/" + address.split("/", 3)[3]
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        page.goto(path)
        rate_all(page)
        assert accessibility_problems(page, frames=False) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        frame = page.frame_locator("iframe#task")
        frame.locator("#send [type=submit]").click()
        expect(frame.locator("[data-code=not_stored]")).to_be_visible()
        page.locator("a[href$='as=desktop']").click()
        expect(page.locator("iframe.trial.desktop")).to_be_visible()
        page.locator("a[rel=next]").click()
        expect(page.frame_locator("iframe.trial.desktop").locator("body")).to_contain_text(
            "Context 1"
        )
    assert not Submission.objects.exists()


def trial_address(study, name, *, token=None):
    item = study.items.first()
    return reverse(f"console:trial-{name}", args=[token or signing.dumps(item.pk, salt=SALT)])


def test_the_page_is_sandboxed_needs_a_token_and_says_what_could_not_be_read(rosa, study):
    browser = Client(headers={"host": "localhost"})
    answer = browser.get(trial_address(study, "page"))
    assert answer["Content-Security-Policy"].startswith("sandbox allow-scripts")
    assert "Context 0" in answer.content.decode()
    assert browser.get(trial_address(study, "page", token="made-up")).status_code == 404
    other = signing.dumps(study.items.first().pk, salt="another purpose")
    assert browser.get(trial_address(study, "page", token=other)).status_code == 404
    answer = browser.post(trial_address(study, "sent"), {"answer": '{"version": 1, "item": "<b>"}'})
    assert answer.context["sent"]["problem"]
    assert "<b>" not in answer.content.decode()
    empty = rating_study("empty", owner=study.owner, n_items=0)  # has nothing to try
    assert rosa.get(reverse("console:try", args=[empty.slug])).status_code == 404


@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_researcher_answers_and_sees_what_would_be_sent(chromium, live_server, study, width):
    viewport = {"width": width, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=viewport) as page:
        sign_in(page, "/login/", "rosa", PASSWORD)
        page.goto("/studies/mine/items/")
        page.locator("a[href$='/try/']").click()
        expect(page.locator("iframe#task")).to_be_visible()
        rate_all(page)
        assert accessibility_problems(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        frame = page.frame_locator("iframe#task")
        frame.locator("#send [type=submit]").click()
        expect(frame.locator("table.sums tbody tr", has_text="appropriateness")).to_have_count(2)
        page.locator("a[href$='as=desktop']").click()
        expect(page.locator("iframe.trial.desktop")).to_be_visible()
        page.locator("a[rel=next]").click()
        expect(page.locator("iframe.trial.desktop")).to_have_attribute("title", re.compile("d1"))
    assert not Submission.objects.exists()
    assert not Judgment.objects.exists()
    assert not models.Assignment.objects.exists()
