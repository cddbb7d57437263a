"""An analyst's evening: from a study that a team shares to a table for a paper, in a browser."""

import csv
import io
import re
import zipfile

import pytest
from playwright.sync_api import expect

from accounts.models import User
from accounts.roles import Role
from accounts.teams import create_team, set_role
from annotation.access import give_to_team
from annotation.models import Study
from hits.models import Worker as MarketplaceWorker
from tests.annotation.studies import systems_of
from tests.browsers import sign_in
from tests.console.conftest import PASSWORD
from tests.console.filled import add_assignment, add_batch
from tests.console.hands import Keyboard, Pointer
from tests.console.sample_study import rated_sample
from tests.console.walkers import Walker
from tests.console.work import work_until_visible

pytestmark = [
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(600),
]
WORKER_ID = "A1REALWORKERID"
WALKS = [
    pytest.param({"width": 1280, "height": 900}, Keyboard(), id="desk-by-keyboard"),
    pytest.param({"width": 390, "height": 844}, Pointer(), id="telephone"),
]


@pytest.fixture
def study(researcher):
    """A rated study of a team, with a worker behind it, whom the analyst never meets."""
    study = rated_sample(researcher, metrics=("rougeL",))
    team = create_team(name="Dialogue Lab", owner=researcher)
    give_to_team(study=study, team=team, actor=researcher)
    batch = add_batch(study)
    add_assignment(batch.hits.first(), WORKER_ID)
    nora = User.objects.create_user("nora", password=PASSWORD)
    set_role(team=team, user=nora, role=Role.ANALYST, actor=researcher)
    return study


class Analyst(Walker):
    """Somebody who may compute and export, and not see money or who workers are."""

    pages: int = 0

    def look(self, name, *, frames=True):
        super().look(name, frames=frames)
        content = self.page.content()
        assert WORKER_ID not in content, name
        assert "$" not in self.page.locator("main").inner_text(), name
        self.pages += 1


@pytest.mark.parametrize(("viewport", "hands"), WALKS)
def test_an_analyst_goes_from_a_shared_study_to_a_latex_table(browsers, study, viewport, hands):
    assert MarketplaceWorker.objects.filter(worker_id=WORKER_ID).exists()
    nora = Analyst(browsers(viewport), hands, "nora")
    sign_in(nora.page, "/login/", nora.name, PASSWORD)
    nora.look("home")
    nora.press("link", study.title)
    nora.look("study")
    read_results(nora)
    read_agreement(nora)
    read_disputes(nora)
    import_scores(nora, study)
    read_metrics(nora)
    take_the_table(nora, study)
    take_the_judgments(nora)
    assert nora.pages > 9
    assert nora.problems == []


def read_results(nora):
    nora.open_stage("Results")
    answer = nora.page.locator(".answer").filter(has_text=re.compile("People (put|rate)"))
    work_until_visible(answer)
    nora.look("results")


def read_agreement(nora):
    nora.open_stage("Agreement")
    work_until_visible(nora.page.get_by_text("Krippendorff's alpha").first)
    nora.look("agreement")


def read_disputes(nora):
    """Who may not adjudicate is not offered a decision."""
    nora.open_stage("Adjudication")
    nora.look("adjudication")
    expect(nora.page.get_by_role("button", name="Decide")).to_have_count(0)


def import_scores(nora, study):
    nora.open_stage("Metrics")
    nora.look("metrics-first")
    nora.press("link", "Import scores from a file…")
    nora.upload("ours.csv", score_table(study))
    nora.submit("Go on")
    nora.see("What is read")
    nora.look("scores-read")
    nora.write("Signature of the scores", "ours|v:2")
    nora.submit("Import the scores")
    nora.see("Look at it, then confirm it.")
    nora.submit("Import the scores")


def score_table(study: Study) -> bytes:
    """A metric of the lab's own, which sees the systems as people do."""
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(["item", "system", "ours"])
    for item in study.items.prefetch_related("candidates"):
        for at, candidate in enumerate(item.candidates.all()):
            writer.writerow([item.key, candidate.system, at + (item.position % 3) / 10])
    return file.getvalue().encode()


def read_metrics(nora):
    nora.open_stage("Metrics")
    work_until_visible(nora.page.locator(".answer").filter(has_text="ours"))
    nora.look("metrics")


def take_the_table(nora, study):
    nora.press("link", "Report", exact=True)
    work_until_visible(nora.page.get_by_role("link", name="report-latex.zip"))
    nora.look("report")
    archive = zipfile.ZipFile(io.BytesIO(nora.download("report-latex.zip")))
    table = archive.read("tables/rated-systems.tex").decode()
    assert r"\begin{tabular}" in table
    assert table.count(r"\\") >= 5
    for system in systems_of(study):
        assert system in table
    source = archive.read("report.tex").decode()
    assert r"\input{tables/rated-systems.tex}" in source
    tables = [name for name in archive.namelist() if name.startswith("tables/")]
    assert any("ours" in archive.read(name).decode() for name in tables)
    assert "people rate" in source.partition("maketitle")[2][:400]
    assert WORKER_ID not in source


def take_the_judgments(nora):
    """Under pseudonyms; who workers are is in no file that this role is offered."""
    nora.open_stage("Downloads")
    nora.look("downloads")
    judgments = nora.download("judgments.csv").decode()
    assert judgments.startswith("study,")
    assert WORKER_ID not in judgments
    assert nora.page.get_by_role("link", name="submissions.csv").count() == 0
