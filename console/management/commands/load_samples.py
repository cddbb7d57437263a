from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from annotation.access import give_to_team
from console.first_run import prepare_accounts, prepare_key, prepare_team
from console.samples import (
    Crowd,
    load_sample_answers,
    load_sample_studies,
    work_on_samples,
)
from hits.local_site import served_site
from hits.loop import Marketplace
from presentation.progress import bar


class Command(BaseCommand):
    help = (
        "Make a sample study of each kind, published and worked on, and accounts to look around "
        "with. What is there already is left alone."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.SAMPLE_PASSWORD:
            hint = "Set SAMPLE_PASSWORD in the environment or .env, or use `make run`, which does."
            raise CommandError(hint, returncode=2)
        with served_site() as site_url:
            researcher = prepare_accounts(site_url, settings.SAMPLE_PASSWORD)
            studies = load_sample_studies(researcher)
            work_on_samples(
                studies=studies,
                marketplace=Marketplace(site_url, prepare_key(site_url)),
                crowd=Crowd(n_left_free=1),
                reporter=bar,
            )
        answers = load_sample_answers(researcher, bar)
        team = prepare_team(owner=researcher, password=settings.SAMPLE_PASSWORD)
        for study in [*studies, answers]:
            study.refresh_from_db(fields=["team"])
            if study.team is None:
                give_to_team(study=study, team=team, actor=None)
        names = ", ".join(study.slug for study in studies)
        self.stdout.write(
            f"Sample studies made, published and worked on: {names}; and scored: {answers.slug}."
        )
