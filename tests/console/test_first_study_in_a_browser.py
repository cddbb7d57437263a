"""From an invitation and an Excel file to paid workers and a downloaded report, in browsers."""

import io
import json
import re
import zipfile

import openpyxl
import pytest
from django.core.management import call_command

from annotation.models import Study
from hits.models import Assignment
from tests.browsers import sign_in
from tests.console.conftest import PASSWORD
from tests.console.hands import Keyboard, Pointer
from tests.console.pages import words_of
from tests.console.walkers import Reviewer, Walker, Worker
from tests.console.work import work_until_visible

pytestmark = [
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]
N_ITEMS = 4
REPLIES = {
    "terse": "No seats. Goodbye.",
    "helpful": "I am sorry. The next flight with a seat leaves at {n}:15; shall I book it?",
}
WALKS = [
    pytest.param({"width": 1280, "height": 900}, Keyboard(), id="desk-by-keyboard"),
    pytest.param({"width": 390, "height": 844}, Pointer(), id="telephone"),
]


def workbook() -> bytes:
    """Two systems' replies, under headings of the lab's own."""
    book = openpyxl.Workbook()
    book.active.append(["Dialog ID", "History", "Bot", "It said", "Gold answer", "ms"])
    for n in range(7, 7 + N_ITEMS):
        history = f"User: My flight at {n} was cancelled.\nAssistant: Where to?\nUser: Oslo."
        gold = f"I am sorry. The next one leaves at {n}:15; shall I book a seat?"
        for system, reply in REPLIES.items():
            book.active.append([f"d{n}", history, system, reply.format(n=n), gold, 12 * n])
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


@pytest.mark.parametrize(("viewport", "hands"), WALKS)
def test_an_excel_file_ends_in_paid_workers_and_a_report(browsers, viewport, hands, capsys):
    rosa = Walker(browsers(viewport), hands, "rosa")
    nina = Reviewer(browsers(viewport), hands, "nina")
    set_first_password(rosa, capsys)
    open_the_team(rosa)
    nina.join(rosa.invite("Manager"), "Travel Lab")
    make_a_study(nina)
    launch_all(nina)
    crowd = [Worker(browsers(viewport), hands, name) for name in ("ada", "bob")]
    for worker in crowd:
        worker.sign_up()
        answer_all(worker)
    nina.collect()
    approve_and_pay(nina)
    for worker in crowd:
        read_earnings(worker)
        assert worker.problems == []
    read_results(nina)
    score(nina)
    download_the_report(nina)
    assert rosa.problems == nina.problems == []


def set_first_password(rosa, capsys):
    """What whoever runs the site does first is to make its owner, who gets a link."""
    call_command("create_owner", "rosa", email="rosa@example.org", team="Travel Lab", json=True)
    rosa.page.goto(json.loads(capsys.readouterr().out)["link"])
    rosa.look("first-password")
    rosa.write("New Password", PASSWORD)
    rosa.write("New Password (again)", PASSWORD)
    rosa.press("button", "Set password")
    rosa.see_heading("The new password holds")
    rosa.look("password-set")
    sign_in(rosa.page, "/login/", rosa.name, PASSWORD)


def open_the_team(rosa):
    rosa.look("home-empty")
    rosa.press("link", "Teams")
    rosa.press("link", "Travel Lab")


def make_a_study(nina):
    nina.press("link", "Studies")
    nina.press("link", "Make your first study from a file")
    nina.write("Name of the study", "Airline help desk")
    nina.upload("airline.xlsx", workbook())
    nina.look("new-study")
    nina.submit("Go on")
    nina.see("Choose at least one column as “Response”.")
    nina.look("mapping-wrong")
    nina.choose("Use It said as", "Response")
    nina.see(REPLIES["terse"])
    nina.choose("Use Gold answer as", "Reference")
    nina.see("4 items with 8 responses of 2 systems")
    nina.look("mapping")
    nina.submit("Make the study")
    nina.see_heading("Airline help desk")
    nina.look("study-new")
    study = Study.objects.get()
    assert (study.team.name, study.items.count()) == ("Travel Lab", N_ITEMS)


def launch_all(nina):
    nina.press("link", "Launch them")
    nina.connect_this_site()
    nina.hands.pick(nina.page.get_by_role("radio", name="All 4 items"))
    nina.write("Reward for a HIT, $", "0.50")
    nina.write("Workers for each item", "2")
    nina.publish("Publish 4 items", "$4.00", "launch")
    nina.see("8 assignments published")


def answer_all(worker):
    """Helpful replies are rated high, without a glance at whose they are."""
    for number in range(N_ITEMS):
        worker.press("link", "Airline help desk")
        worker.press("button", "Accept this HIT")
        worker.page.wait_for_url("**/worker/assignments/**")
        if not number:
            worker.look("task")
        worker.rate_by(lambda text, more=number / 10: (0.6 if "sorry" in text else 0.1) + more)
        worker.submit_answers()
        worker.page.goto("/worker/")


def approve_and_pay(nina):
    nina.open_desk()
    nina.look("desk")
    nina.approve_unflagged(8, "4.00")
    nina.send_all(8)
    nina.look("paid")
    assert set(Assignment.objects.values_list("status", flat=True)) == {"Approved"}


def read_earnings(worker):
    worker.press("link", "Earnings")
    worker.see("$2.00")
    worker.look("earnings")


def read_results(nina):
    nina.open_stage("Results")
    work_until_visible(nina.page.get_by_text("so far people put helpful first"))
    nina.look("results")


def score(nina):
    nina.open_stage("Metrics")
    for metric in ("rouge1", "chrf"):
        nina.hands.tick(nina.page.get_by_label(metric, exact=True))
    nina.press("button", "Score", exact=True)
    work_until_visible(nina.page.locator(".answer"))
    nina.look("metrics")


def download_the_report(nina):
    nina.press("link", "airline-help-desk", exact=True)
    nina.see("4 items, too few to be sure")
    nina.look("study-done")
    nina.open_stage("Results")
    nina.press("link", "Report", exact=True)
    work_until_visible(nina.page.get_by_role("link", name="report-latex.zip"))
    nina.look("report")
    page = nina.download("report.html").decode()
    archive = zipfile.ZipFile(io.BytesIO(nina.download("report-latex.zip")))
    source = archive.read("report.tex").decode()
    for beginning in (page.partition("</h1>")[2], source.partition(r"\maketitle")[2]):
        sentence = words_of(beginning)[:300]
        assert re.search(r"appropriateness: .* helpful .*, \d\d\.\d\d ", sentence)
    table = archive.read("tables/rated-systems.tex").decode()
    assert [name for name in REPLIES if name not in table] == []
