"""Accounts and teams in a real Chromium: invited, joined and secured by the keyboard."""

import re

import pytest
from playwright.sync_api import expect

from accounts.models import Membership
from accounts.teams import create_team
from tests.accessibility import accessibility_problems
from tests.accounts.second_factors import code_of
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
    row = create_team(name="Dialogue Lab", owner=researcher)
    rating_study("shared", owner=researcher, team=row)
    return row


def check_accessible(page):
    for size in reversed(SIZES):
        page.set_viewport_size(size)
        assert accessibility_problems(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_somebody_is_invited_and_joins_with_no_shell(page, chromium, live_server, team):
    sign_in(page, "/login/", "rosa", PASSWORD)
    page.get_by_role("link", name="Teams").press("Enter")
    page.get_by_role("link", name="Dialogue Lab").press("Enter")
    check_accessible(page)
    page.get_by_label("E-mail address").fill("nina@example.org")
    page.get_by_label("Role", exact=True).select_option("analyst")
    page.get_by_role("button", name="Invite").press("Enter")
    link = page.get_by_text(re.compile("/invited/")).inner_text()
    check_accessible(page)
    with opened_page(chromium, base_url=live_server.url, viewport=SIZES[1]) as hers:
        hers.goto(link)
        check_accessible(hers)
        hers.get_by_label("Username").fill("nina")
        hers.get_by_label("Password").fill(PASSWORD)
        hers.keyboard.press("Enter")
        expect(hers.get_by_role("heading", name="Dialogue Lab")).to_be_visible()
        expect(hers.get_by_role("button", name="Invite")).to_have_count(0)
        check_accessible(hers)
    page.reload()
    page.get_by_label("Role of nina").select_option("adjudicator")
    page.get_by_role("button", name="Change the role of nina").press("Enter")
    expect(page.get_by_text("The role was changed.")).to_be_visible()
    assert Membership.objects.get(user__username="nina").role == "adjudicator"
    page.get_by_role("link", name="Audit log").press("Enter")
    entries = page.get_by_role("listitem").filter(has_text="member.role")
    expect(entries.first).to_be_visible()
    check_accessible(page)
    page.goto("/studies/shared/members/")
    check_accessible(page)


def test_a_second_factor_is_set_up_and_used_by_the_keyboard(page, researcher):
    sign_in(page, "/login/", "rosa", PASSWORD)
    page.goto("/account/second-factor/")
    check_accessible(page)
    page.get_by_role("link", name="Set up").press("Enter")
    check_accessible(page)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Set up the second factor")).to_be_visible()
    check_accessible(page)
    # The policy lets the QR code in.
    assert page.locator("img.qr").evaluate("image => image.complete && image.naturalWidth > 0")
    secret = page.get_by_text(re.compile("^[A-Z2-7]{32}$")).inner_text()
    page.get_by_label("Authenticator code").fill(code_of(secret))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    check_accessible(page)
    recovery_code = page.locator(".codes code").first.inner_text()
    page.get_by_role("button", name="Log out").press("Enter")
    page.get_by_label("Username").fill("rosa")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Enter your code")).to_be_visible()
    check_accessible(page)
    page.get_by_label("Code").fill(recovery_code)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Studies", exact=True)).to_be_visible()


@pytest.mark.parametrize("part", ["", "email/", "sessions/", "password/"])
def test_the_pages_of_ones_account_are_accessible(page, researcher, part):
    sign_in(page, "/login/", "rosa", PASSWORD)
    page.goto(f"/account/{part}")
    check_accessible(page)


def test_a_team_makes_a_token_for_a_program_and_revokes_it(page, team):
    sign_in(page, "/login/", "rosa", PASSWORD)
    page.goto("/teams/dialogue-lab/")
    page.get_by_role("link", name="Tokens with which programs act").press("Enter")
    page.get_by_label("Name").fill("Nightly export")
    page.get_by_label("Make and change studies").press("Space")
    check_accessible(page)
    keep_picture(page)
    page.get_by_role("button", name="Make a token").press("Enter")
    text = page.get_by_text(re.compile("^assay_.{40}")).inner_text()
    check_accessible(page)
    for size in SIZES:
        page.set_viewport_size(size)
        keep_picture(page)
    page.goto("/teams/dialogue-lab/tokens/")
    expect(page.get_by_text(text)).to_have_count(0)
    page.get_by_role("button", name="Revoke Nightly export").press("Enter")
    expect(page.get_by_text("No token yet.")).to_be_visible()
