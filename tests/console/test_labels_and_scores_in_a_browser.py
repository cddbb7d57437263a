"""Labels of another tool, scores of another program and a judge's estimate, at a desk and on a
phone."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from accounts.models import User
from accounts.teams import create_team
from annotation.models import Study
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
def page(request: pytest.FixtureRequest, chromium: Any, live_server: Any, researcher: User) -> Any:
    size = {"width": request.param, "height": 900}
    with opened_page(chromium, base_url=live_server.url, viewport=size) as page:
        sign_in(page, "/", researcher.username, PASSWORD)
        yield page


def check(page: Page) -> None:
    keep_picture(page)
    assert accessibility_problems(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def choose(page: Page, name: str, content: str) -> None:
    file = {"name": name, "mimeType": "text/csv", "buffer": content.encode()}
    page.get_by_label("File", exact=True).set_input_files(file)  # type: ignore[arg-type]


def test_labels_of_a_table_become_a_study(page: Page) -> None:
    page.get_by_role("link", name="New study").click()
    page.get_by_label("Name of the study").fill("Elsewhere")
    page.get_by_label("Labels that were collected elsewhere").check()
    expect(page.get_by_label("What annotators are asked")).to_be_hidden()
    check(page)
    choose(page, "labels.csv", LABELS)
    page.get_by_role("button", name="Go on").click()
    page.get_by_label("Use dialogue as").select_option("item")
    page.get_by_role("button", name="Read it so").click()
    expect(
        page.get_by_text("40 answers of 2 annotators to 2 questions about 5 items")
    ).to_be_visible()
    check(page)
    page.get_by_role("button", name="Make the study").click()
    page.wait_for_url("**/studies/elsewhere/")
    check(page)
    page.goto(f"{page.url}launch/")
    expect(page.get_by_text("were collected elsewhere")).to_be_visible()
    check(page)


def test_scores_are_imported_and_a_judge_is_estimated(page: Page, researcher: User) -> None:
    team = create_team(name="Lab", owner=researcher)
    study: Study = rated_study("mine", owner=researcher, team=team)
    JudgeConnection.objects.create(team=team, name="Ours", base_url="http://127.0.0.1:9/v1")
    page.goto("/studies/mine/scores/add/")
    choose(
        page, "scores.csv", "item,system,bleurt,loss\nd0,alpha,0.5,2\nd0,beta,high,1\nd1,alpha,1,\n"
    )
    page.get_by_role("button", name="Go on").click()
    expect(page.get_by_text("'high' is not a number")).to_be_visible()
    check(page)
    page.goto("/studies/mine/scores/new/?metric=geval")
    check(page)
    # Of a grade there is one reply, so that nothing has to be found out of the endpoint.
    page.goto("/studies/mine/scores/new/?metric=judge")
    page.get_by_label("Model", exact=True).fill("tiny")
    page.get_by_label("$ per million tokens sent").fill("0.5")
    page.get_by_label("$ per million tokens received").fill("1.5")
    page.get_by_label("Stop before it costs more than, $").fill("2.50")
    page.get_by_role("button", name="Estimate").click()
    expect(page.get_by_role("button", name="Score for at most $2.50")).to_be_visible()
    check(page)
    assert ScoringRequest.objects.get().study == study
    page.goto("/teams/lab/judges/")
    check(page)
