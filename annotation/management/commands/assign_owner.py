from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.access import assign_owner
from annotation.management.importer import user_named
from annotation.models import Study


class Command(BaseCommand):
    help = "Give a study an owner, who then sees it in the console."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("user", metavar="USER")
        parser.add_argument(
            "--replace", action="store_true", help="also where another user owns the study"
        )

    def handle(self, *args: Any, study: str, user: str, replace: bool, **options: Any) -> None:
        former = assign_owner(
            study=Study.objects.named(study), owner=user_named(user), is_replacing=replace
        )
        replaced = f" instead of '{former}'" if former and former.get_username() != user else ""
        self.stdout.write(f"Study '{study}' belongs to '{user}' now{replaced}.")
