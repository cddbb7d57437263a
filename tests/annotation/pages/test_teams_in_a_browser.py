import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from accounts import models, teams
from tests.accessibility import accessibility_problems
from tests.accounts.conftest import code_of
from tests.annotation.studies import rating_study
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.pictures import keep_picture

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
SIZES = [{"width": 1280, "height": 900}, {"width": 390, "height": 800}]


@pytest.fixture
def page(chromium, live_server, settings):
    settings.SITE_URL = live_server.url
    with opened_page(chromium, base_url=live_server.url, viewport=SIZES[0]) as page:
        yield page


@pytest.fixture
def team(researcher):
    row = teams.create_team(name="Dialogue Lab", owner=researcher)
    rating_study("shared", owner=researcher, team=row)
    return row


def check_accessible(page):
    for size in reversed(SIZES):
        page.set_viewport_size(size)
        assert accessibility_problems(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


@pytest.mark.flow
def test_somebody_is_invited_and_joins_with_no_shell(page, chromium, live_server, team):
    sign_in(page, "/login/", "rosa", PASSWORD)
    page.locator(f"a[href='{reverse('console:teams')}']").first.press("Enter")
    page.get_by_role("link", name="Dialogue Lab").press("Enter")
    check_accessible(page)
    invitation = page.locator(f"form[action='{reverse('console:invite', args=[team.slug])}']")
    invitation.locator("[name=email]").fill("nina@example.org")
    invitation.locator("[name=role]").select_option("analyst")
    invitation.locator("button").press("Enter")
    link = page.get_by_text(re.compile("/invited/")).inner_text()
    check_accessible(page)
    with opened_page(chromium, base_url=live_server.url, viewport=SIZES[1]) as hers:
        hers.goto(link)
        check_accessible(hers)
        hers.locator("[name=username]").fill("nina")
        hers.locator("[name=password]").fill(PASSWORD)
        hers.keyboard.press("Enter")
        expect(hers.get_by_role("heading", name="Dialogue Lab")).to_be_visible()
        expect(hers.locator("form[action$='/invite/']")).to_have_count(0)
        check_accessible(hers)
    page.reload()
    nina = models.Membership.objects.get(user__username="nina")
    change = reverse("console:member-role", args=[team.slug, nina.pk])
    page.locator(f"form[action='{change}'] select").select_option("adjudicator")
    page.locator(f"form[action='{change}'] button").press("Enter")
    expect(page.locator(".notice.success")).to_be_visible()
    nina.refresh_from_db()
    assert nina.role == "adjudicator"
    page.locator("a[href$='/audit-log/']").first.press("Enter")
    expect(page.get_by_role("listitem").filter(has_text="member.role").first).to_be_visible()
    check_accessible(page)
    page.goto("/studies/shared/members/")
    check_accessible(page)


def test_a_second_factor_is_set_up_and_used_by_the_keyboard(page, researcher):
    sign_in(page, "/login/", "rosa", PASSWORD)
    page.goto("/account/second-factor/")
    check_accessible(page)
    page.locator(f"a[href='{reverse('mfa_activate_totp')}']").press("Enter")
    check_accessible(page)
    page.locator("[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.locator("img.qr")).to_be_visible()
    check_accessible(page)
    # The policy lets the QR code in.
    assert page.locator("img.qr").evaluate("image => image.complete && image.naturalWidth > 0")
    secret = page.get_by_text(re.compile("^[A-Z2-7]{32}$")).inner_text()
    page.locator("[name=code]").fill(code_of(secret))
    page.keyboard.press("Enter")
    expect(page.locator(".codes")).to_be_visible()
    check_accessible(page)
    recovery_code = page.locator(".codes code").first.inner_text()
    page.locator(f"form[action='{reverse('console:logout')}'] button").press("Enter")
    page.locator("[name=username]").fill("rosa")
    page.locator("[name=password]").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.locator("[name=code]")).to_be_visible()
    check_accessible(page)
    page.locator("[name=code]").fill(recovery_code)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{reverse('console:studies')}")


def test_the_pages_of_ones_account_are_accessible(page, researcher):
    sign_in(page, "/login/", "rosa", PASSWORD)
    for part in ("", "email/", "sessions/", "password/"):
        page.goto(f"/account/{part}")
        check_accessible(page)


def test_a_team_makes_a_token_for_a_program_and_revokes_it(page, team):
    sign_in(page, "/login/", "rosa", PASSWORD)
    page.goto("/teams/dialogue-lab/")
    page.locator("a[href$='/tokens/']").press("Enter")
    page.locator("[name=name]").fill("Nightly export")
    page.locator("input[type=checkbox]").nth(1).press("Space")
    check_accessible(page)
    keep_picture(page)
    page.locator("form:has([name=name]) button").press("Enter")
    text = page.get_by_text(re.compile("^assay_.{40}")).inner_text()
    check_accessible(page)
    for size in SIZES:
        page.set_viewport_size(size)
        keep_picture(page)
    page.goto("/teams/dialogue-lab/tokens/")
    expect(page.get_by_text(text)).to_have_count(0)
    page.get_by_role("button", name="Nightly export").press("Enter")
    expect(page.locator(".empty")).to_be_visible()
