from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from hits.loop import Marketplace, served_site
from presentation.progress import bar


class Command(BaseCommand):
    help = (
        "Make a sample study of each kind, published and worked on, and accounts to look around "
        "with. What is there already is left alone."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        # Imports much; --help needs none of it.
        from config.samples import prepare_key, prepare_samples

        password = settings.SAMPLE_PASSWORD
        if not password:
            raise CommandError(
                "Set SAMPLE_PASSWORD in the environment or .env, or use `make run`, which does.",
                returncode=2,
            )
        self.stdout.write("Making sample studies and people's answers to them; this takes a while.")
        self.stdout.flush()
        with served_site() as site_url:
            studies = prepare_samples(
                marketplace=Marketplace(site_url, prepare_key(site_url)),
                password=password,
                reporter=bar,
            )
        *worked, scored = (study.slug for study in studies)
        self.stdout.write(
            f"Sample studies made, published and worked on: {', '.join(worked)}; "
            f"and scored: {scored}."
        )
