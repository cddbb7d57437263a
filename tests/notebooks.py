"""The notebooks of docs/notebooks: executed against a temporary site, with their outputs stored.

    make notebooks

The site has a team, its marketplace with play money, a sample study that simulated workers judged,
and a crowd of them that does what is launched.
"""

import json
import os
import threading
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "docs" / "notebooks"
CROWD_SIZE = 3
METRICS = ("rouge1", "rougeL", "sacrebleu", "chrf")
MOST_BYTES = 100_000


def notebooks():
    return sorted(FOLDER.glob("*.ipynb"))


def code_cells(path):
    content = json.loads(path.read_text())
    return [cell for cell in content["cells"] if cell["cell_type"] == "code"]


def token_of(owner):
    from accounts.roles import Scope
    from accounts.tokens import create_personal_token

    scopes = [scope.value for scope in Scope]
    return create_personal_token(user=owner, name="notebooks", scopes=scopes, days=7).text


def team_with_funds(owner):
    from accounts.teams import create_team
    from hits.connections import connect_this_site

    team = create_team(name="Dialogue lab", owner=owner)
    connect_this_site(team=team, name="This site", actor=owner, test_funds_usd=Decimal(100))
    return team


@contextmanager
def repeated(step):
    """Do this in a thread, over and over, until the block ends; then what failed is raised."""
    ended, errors = threading.Event(), []

    def work():
        from django.db import connection

        try:
            while not ended.wait(0.3):
                step()
        except Exception as error:  # noqa: BLE001
            errors.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=60)
    if errors:
        raise errors[0]


def let_the_crowd_work(site_url):
    from hits.models import Batch, Hit

    for batch in Batch.objects.started().filter(collected_at=None, closed_at=None):
        if not Hit.objects.of(batch).unpublished().exists():
            _replay(batch, site_url)


def _replay(batch, site_url):
    from hits.crowd.replay import crowd_names, replay_group
    from hits.crowd.simulated import SimulatedAnswers

    return replay_group(
        hit_type_id=batch.hit_type_id,
        names=crowd_names(CROWD_SIZE, seed=7),
        source=SimulatedAnswers(batch.study, seed=7),
        site_url=site_url,
        total=0,
    )


def work_off():
    from django.core.management import call_command

    call_command("run_worker", until_empty=True)


@contextmanager
def working_site(site_url):
    with repeated(work_off), repeated(lambda: let_the_crowd_work(site_url)):
        yield


def main():
    with TemporaryDirectory() as folder:
        os.environ["DATABASE_URL"] = f"sqlite:///{folder}/site.sqlite3"
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
        os.environ.setdefault("SITE_URL", "http://127.0.0.1:8000")
        import django

        django.setup()
        from django.conf import settings

        from hits.loop import prepare_database, served_site

        prepare_database()
        with ExitStack() as stack:
            url = stack.enter_context(served_site())
            settings.SITE_URL, settings.MARKETPLACE_TEST_FUNDS = url, True
            settings.MARKETPLACE_ENDPOINT_URL = f"{url}/requester"
            token = _prepare_site(url)
            stack.enter_context(working_site(url))
            for path in notebooks():
                _execute(path, url, token)


def _prepare_site(url):
    """Somebody with a team and a study that is judged and scored; their token."""
    from accounts.models import User
    from annotation.access import give_to_team
    from config.samples import load_sample_studies
    from hits.connections import enrol_requester
    from hits.loop import Marketplace, run_loop
    from metrics.study_scores import named_scorer, score_study

    rosa = User.objects.create_user("rosa")
    team = team_with_funds(rosa)
    study, _alternatives = load_sample_studies(rosa)
    key = enrol_requester(site_url=url, name="notebooks", test_funds_usd=Decimal(100))
    run_loop(
        study=study,
        marketplace=Marketplace(url, key),
        reward_usd=Decimal("0.12"),
        max_assignments=CROWD_SIZE,
        work=_replay,
        description="Read a short conversation and rate four responses to it.",
    )
    for name in METRICS:
        score_study(study=study, scorer=named_scorer(name))
    give_to_team(study=study, team=team, actor=rosa)
    return token_of(rosa)


def _execute(path, url, token):
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    os.environ |= {"ASSAY_URL": url, "ASSAY_TOKEN": token, "PYTHONPATH": str(PROJECT)}
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(FOLDER)}}).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # the times at which it ran
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"]}
    nbformat.write(notebook, path)


if __name__ == "__main__":
    main()
