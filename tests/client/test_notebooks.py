"""The notebooks in docs: their code runs, and what they show is what it did."""

import pytest

from annotation.access import give_to_team
from tests.console.filled import scored_study
from tests.notebooks import (
    FOLDER,
    MOST_BYTES,
    PROJECT,
    code_cells,
    notebooks,
    team_with_funds,
    token_of,
    working_site,
)

NAMES = [path.name for path in notebooks()]


@pytest.mark.once
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_shows_what_its_cells_did_in_order(name):
    cells = code_cells(FOLDER / name)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    kinds = {output["output_type"] for cell in cells for output in cell["outputs"]}
    assert kinds <= {"execute_result", "display_data", "stream"}
    assert (FOLDER / name).stat().st_size < MOST_BYTES


@pytest.fixture
def site(live_server, settings, monkeypatch, rosa):
    """What `make notebooks` has, with fewer scores: environment, team, study, worker and crowd."""
    settings.SITE_URL, settings.MARKETPLACE_TEST_FUNDS = live_server.url, True
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    team = team_with_funds(rosa)
    study = scored_study("sample-rating", owner=rosa, metrics=("rouge1", "chrf"))
    give_to_team(study=study, team=team, actor=rosa)
    monkeypatch.setenv("ASSAY_URL", live_server.url)
    monkeypatch.setenv("ASSAY_TOKEN", token_of(rosa))
    monkeypatch.syspath_prepend(str(PROJECT))
    monkeypatch.chdir(FOLDER)
    with working_site(live_server.url):
        yield


@pytest.mark.once
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", NAMES)
def test_the_code_of_a_notebook_runs(site, name):
    names = {}
    for cell in code_cells(FOLDER / name):
        exec(compile("".join(cell["source"]), name, "exec"), names)
    names["client"].close()
