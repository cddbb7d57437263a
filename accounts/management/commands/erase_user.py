from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from accounts.enrolment import erase_user, erasure_obstacles
from accounts.exceptions import ErasureRefused
from accounts.models import User


class Command(BaseCommand):
    help = "Erase who a user is; studies and decisions stay, under a name that leads to nobody."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument(
            "--dry-run", action="store_true", help="Only say whether it can be done."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.named(options["name"])
        if not options["dry_run"]:
            erase_user(user)
            self.stdout.write(f"{options['name']} is erased.")
        elif reasons := erasure_obstacles(user):
            raise ErasureRefused(" ".join(reasons))
        else:
            self.stdout.write(f"{options['name']} can be erased.")
