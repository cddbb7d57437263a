import pytest
from playwright.sync_api import expect

from accounts.teams import create_team
from metrics.models import JudgeConnection, ScoringRequest
from tests.accessibility import accessibility_problems
from tests.annotation.studies import rated_study
from tests.browsers import opened_page, sign_in
from tests.console.conftest import PASSWORD
from tests.pictures import keep_picture

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("_immediate_tasks"),
]
LABELS = "dialogue;rater;criterion;rating;bot;reply\n" + "".join(
    f"d{n};{who};{name};{(n * 3 + len(bot) + len(who)) % 5 + 1};{bot};Answer {n} of {bot}\n"
    for n in range(5)
    for who in ("Ann", "Bobby")
    for name in ("style", "tone")
    for bot in ("alpha", "gamma2")
)


@pytest.fixture(params=[1280, 390], ids=["desk", "phone"])
def page(request, chromium, live_server, researcher):
    size = {"width": request.param, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=size) as page:
        sign_in(page, "/", researcher.username, PASSWORD)
        yield page


def check(page):
    keep_picture(page)
    assert accessibility_problems(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def choose(page, name, content):
    file = {"name": name, "mimeType": "text/csv", "buffer": content.encode()}
    page.locator("[name=file]").set_input_files(file)


def test_labels_of_a_table_become_a_study(page):
    page.locator("main a[href='/new-study/']").first.click()
    page.locator("[name=title]").fill("Elsewhere")
    page.locator("[name=begin][value=labels]").check()
    expect(page.locator("[name=template]").first).to_be_hidden()
    check(page)
    choose(page, "labels.csv", LABELS)
    page.locator("main form button.btn-primary").click()
    page.locator("[name=use-0]").select_option("item")
    page.locator("#mapping > button").click()
    expect(page.locator(".go [role=status] strong")).to_contain_text("40 ")
    check(page)
    page.locator("button[formaction*='/import/']").click()
    page.wait_for_url("**/studies/elsewhere/")
    check(page)
    page.goto(f"{page.url}launch/")
    expect(page.locator("[data-code=collected_elsewhere]")).to_be_visible()
    check(page)


def test_scores_are_imported_and_a_judge_is_estimated(page, researcher):
    team = create_team(name="Lab", owner=researcher)
    study = rated_study("mine", owner=researcher, team=team)
    JudgeConnection.objects.create(team=team, name="Ours", base_url="http://127.0.0.1:9/v1")
    page.goto("/studies/mine/scores/add/")
    choose(
        page, "scores.csv", "item,system,bleurt,loss\nd0,alpha,0.5,2\nd0,beta,high,1\nd1,alpha,1,\n"
    )
    page.locator("main form button.btn-primary").click()
    expect(page.get_by_text("'high'")).to_be_visible()
    check(page)
    page.goto("/studies/mine/scores/new/?metric=geval")
    check(page)
    # Of a grade there is one reply, so that nothing has to be found out of the endpoint.
    page.goto("/studies/mine/scores/new/?metric=judge")
    for name, value in (
        *(("model", "tiny"), ("usd_per_million_input", "0.5")),
        *(("usd_per_million_output", "1.5"), ("max_usd", "2.50")),
    ):
        page.locator(f"[name={name}]").fill(value)
    page.locator("main form button.btn-primary").click()
    expect(page.locator("form[action*='/confirm/'] button")).to_contain_text("$2.50")
    check(page)
    assert ScoringRequest.objects.get().study == study
    page.goto("/teams/lab/judges/")
    check(page)
