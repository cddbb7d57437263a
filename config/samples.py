"""The first run: accounts, a team, and sample studies that a crowd works on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from secrets import token_urlsafe

from django.conf import settings
from django.contrib.auth.models import AbstractBaseUser
from django.db import transaction
from django.db.models import F
from django.utils.text import slugify

from accounts.enrolment import create_user, set_password
from accounts.exceptions import NameTaken
from accounts.models import Team, User
from accounts.roles import Role
from accounts.teams import create_team, set_role
from annotation.access import give_to_team, set_study_role
from annotation.exceptions import FolderUnusable
from annotation.imports import import_study
from annotation.models import Study, Submission
from annotation.protocols.versions import current_document, newest_version, save_draft
from annotation.readers.drafts import QuestionDraft
from annotation.readers.item_files import APPROPRIATENESS, read_alternatives, read_responses
from annotation.result_kinds.base import find_study_kind
from annotation.study_facts import AGREEMENT, RESULTS, SCORES, VALIDATION
from annotation.study_files import (
    file_names,
    study_download,
)
from config.environment import (
    PATH,
    add_setting,
)
from hits.connections import enrol_requester, enrol_worker
from hits.crowd.replay import ReplayResult, crowd_names, replay_group
from hits.crowd.simulated import SimulatedAnswers
from hits.endpoints import AccessKey, connect, translated_errors
from hits.exceptions import MarketplaceRefused
from hits.loop import Marketplace, run_loop, served_site
from hits.models import Batch
from metrics.study_scores import named_scorer, score_study
from presentation.files import write_whole
from presentation.progress import Reporter, without_bars
from replications.published_data import import_published, read_golden_answers
from validation.datasheet import whole_report
from validation.study_report import REPORT_FILES

RESEARCHER, WORKER, REQUESTER = "researcher", "worker", "Sample lab"
TEAM, ANALYST = "Sample team", "analyst"
TEST_FUNDS_USD = Decimal(1000)


def prepare_accounts(site_url: str, password: str) -> User:
    researcher, _ = User.objects.get_or_create(username=RESEARCHER)
    if not User.objects.filter(username=WORKER).exists():
        enrol_worker(site_url=site_url, username=WORKER, password=password)
    for user in (researcher, User.objects.get(username=WORKER)):
        set_password(user=user, password=password)
    return researcher


def prepare_team(*, owner: User, password: str) -> Team:
    team = Team.objects.filter(slug=slugify(TEAM)).first() or create_team(name=TEAM, owner=owner)
    analyst, _ = User.objects.get_or_create(username=ANALYST)
    set_password(user=analyst, password=password)
    if not team.memberships.filter(user=analyst).exists():
        set_role(team=team, user=analyst, role=Role.ANALYST, actor=None)
    return team


def prepare_key(site_url: str, path: Path = PATH) -> AccessKey:
    """The key in the settings, or a new one, which is added to .env.

    A new one is made where there is none, or where the database that knew it is gone.
    """
    key = AccessKey(settings.MARKETPLACE_ACCESS_KEY_ID, settings.MARKETPLACE_SECRET_ACCESS_KEY)
    if not (key.access_key_id and key.secret_access_key and _opens(Marketplace(site_url, key))):
        key = enrol_requester(site_url=site_url, name=REQUESTER, test_funds_usd=TEST_FUNDS_USD)
        add_setting("MARKETPLACE_ACCESS_KEY_ID", key.access_key_id, path)
        add_setting("MARKETPLACE_SECRET_ACCESS_KEY", key.secret_access_key, path)
    return key


def prepare_samples(
    *, marketplace: Marketplace, password: str, reporter: Reporter = without_bars
) -> list[Study]:
    """Accounts, a team, and its three sample studies, of which a crowd answered the first two."""
    researcher = prepare_accounts(marketplace.site_url, password)
    studies = load_sample_studies(researcher)
    work_on_samples(
        studies=studies, marketplace=marketplace, crowd=Crowd(n_left_free=1), reporter=reporter
    )
    compute_results(studies)
    studies.append(load_sample_answers(researcher, reporter))
    team = prepare_team(owner=researcher, password=password)
    for study in studies:
        study.refresh_from_db(fields=["team"])
        if study.team is None:
            give_to_team(study=study, team=team, actor=None)
    return studies


def compute_results(studies: Iterable[Study]) -> None:
    """What pages would request first, so that they show it at once."""
    for study in studies:
        for name in (RESULTS, AGREEMENT, VALIDATION):
            find_study_kind(name).require(study)


def _opens(marketplace: Marketplace) -> bool:
    client = connect(key=marketplace.key, endpoint_url=marketplace.endpoint_url)
    try:
        with translated_errors():
            client.get_account_balance()
    except MarketplaceRefused as refused:
        if refused.has_code("UnrecognizedClientException"):
            return False
        raise
    return True


FOLDER: Path = settings.BASE_DIR / "samples"
REWARD_USD = Decimal("0.12")
TEXT_METRICS = ("rouge1", "rouge2", "rougeL", "sacrebleu", "chrf")
DESCRIPTIONS: dict[str, str] = {
    Study.Kind.RATING: "Read a short conversation and rate four responses to it.",
    Study.Kind.ALTERNATIVES: "Look at a product and tick those you would take instead.",
}
QUESTIONS = (
    APPROPRIATENESS,
    QuestionDraft(
        name="naturalness",
        wording="How natural is the response, as something a person would say?",
        low_label="Not at all natural",
        high_label="Completely natural",
    ),
)


@dataclass(frozen=True)
class Crowd:
    """How many simulated workers there are, by which seed, and how many places they leave free."""

    n_workers: int = 3
    n_left_free: int = 0
    seed: int = 7


def load_sample_studies(owner: AbstractBaseUser | None = None) -> list[Study]:
    responses, alternatives = FOLDER / "responses.csv", FOLDER / "alternatives.jsonl"
    rating = import_study(
        draft=read_responses(responses, QUESTIONS),
        path=responses,
        slug="sample-rating",
        title="Sample: four assistants rated",
        owner=owner,
    )
    pools = import_study(
        draft=read_alternatives(alternatives),
        path=alternatives,
        slug="sample-alternatives",
        title="Sample: acceptable alternatives",
        owner=owner,
    )
    Study.objects.filter(pk=pools.study.pk).update(justification_min_length=20)
    return [rating.study, Study.objects.get(pk=pools.study.pk)]


def load_sample_answers(
    owner: AbstractBaseUser | None = None, reporter: Reporter = without_bars
) -> Study:
    """Import the sample golden answers under two prompts, and score them; nobody judges them."""
    path = FOLDER / "golden_answers.csv"
    study = import_published(
        published=read_golden_answers(path),
        path=path,
        slug="sample-golden-answers",
        title="Sample: golden answers under two prompts",
        owner=owner,
    ).study
    # Annotators are asked how near an answer comes to it; by default it is not shown.
    if newest_version(study) is None:
        document = current_document(study)
        save_draft(
            study=study,
            document=replace(document, display=replace(document.display, reference=True)),
        )
    for name in sample_metrics():
        score_study(study=study, scorer=named_scorer(name), progress=reporter(name))
    find_study_kind(SCORES).require(study)
    return study


def sample_metrics() -> tuple[str, ...]:
    # With the bundled encoder if its libraries are installed.
    return (*TEXT_METRICS, "embedding") if find_spec("sentence_transformers") else TEXT_METRICS


def work_on_samples(
    *,
    studies: Sequence[Study],
    marketplace: Marketplace,
    crowd: Crowd,
    reporter: Reporter = without_bars,
) -> None:
    for study in studies:
        run_loop(
            study=study,
            marketplace=marketplace,
            reward_usd=REWARD_USD,
            max_assignments=crowd.n_workers + crowd.n_left_free,
            work=lambda batch, site_url: _work(batch, site_url, crowd, reporter),
            description=DESCRIPTIONS[study.kind],
            reporter=reporter,
        )
        # The crowd submits at once what its model took a while for; pages show the model's time.
        Submission.objects.of(study).exclude(active_seconds=None).update(
            seconds=F("active_seconds")
        )
        if study.kind == Study.Kind.RATING:
            for name in sample_metrics():
                score_study(study=study, scorer=named_scorer(name), progress=reporter(name))


def _work(batch: Batch, site_url: str, crowd: Crowd, reporter: Reporter) -> ReplayResult:
    return replay_group(
        hit_type_id=batch.hit_type_id,
        names=crowd_names(crowd.n_workers, seed=crowd.seed),
        source=SimulatedAnswers(batch.study, seed=crowd.seed),
        site_url=site_url,
        total=batch.hits.count() * crowd.n_workers,
        progress=reporter("working"),
    )


def demonstrate(
    *, folder: Path, crowd: Crowd, reporter: Reporter = without_bars
) -> tuple[list[Study], list[Path]]:
    """Import, publish, work, collect, approve, score; then write what a study's page offers.

    Returns the studies and the files.
    """
    # First, so that a slip in its name is told before the work and not after.
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FolderUnusable(f"{folder} cannot be made: {error.strerror}.") from None
    studies = load_sample_studies()
    with served_site() as site_url:
        key = enrol_requester(site_url=site_url, name="demo", test_funds_usd=Decimal(100))
        work_on_samples(
            studies=studies,
            marketplace=Marketplace(site_url, key),
            crowd=crowd,
            reporter=reporter,
        )
    return studies, _write_studies(studies, folder)


def _write_studies(studies: list[Study], folder: Path) -> list[Path]:
    files = []
    for study in studies:
        names = file_names(study)
        for name in names:
            path = folder / f"{study.slug}-{name}"
            write_whole(path, study_download(name).write(study))
            files.append(path)
        if "scores.csv" in names:
            files.append(write_report(study, folder))
    return files


def write_report(study: Study, folder: Path) -> Path:
    find_study_kind(AGREEMENT).compute_now(study)
    path = folder / f"{study.slug}-report.html"
    write_whole(path, [REPORT_FILES["report.html"](whole_report(study))])
    return path


PASSWORD_BYTES = 12
# Of which reading is left: all of a study but what its team alone sees (accounts/second_factor.py).
ROLE = Role.RESEARCHER


@transaction.atomic
def create_demo_user(*, name: str, studies: Iterable[Study]) -> str:
    """Let an account look at these studies; the password of a new one, or nothing.

    NameTaken where somebody has that name who is not there to look around.
    """
    user = User.objects.filter(username=name).first()
    password = "" if user else token_urlsafe(PASSWORD_BYTES)
    if user is None:
        user = create_user(username=name, password=password)
        User.objects.filter(pk=user.pk).update(is_read_only=True)
    elif not user.is_read_only:
        raise NameTaken(f"There is a user named '{name}' already, who is no demo account.")
    for study in studies:
        set_study_role(study=study, user=user, role=ROLE, actor=None)
    return password
