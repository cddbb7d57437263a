import getpass
import os
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.enrolment import create_user
from error_codes import require

VARIABLE = "NEW_USER_PASSWORD"


class Command(BaseCommand):
    help = (
        "Create a user who can sign in to the console, such as the first researcher. The password "
        f"is asked for, or read from the environment variable {VARIABLE}."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="The name or e-mail address to sign in with.")
        parser.add_argument(
            "--staff", action="store_true", help="Make the user an operator of the marketplace."
        )

    def handle(self, *args: Any, name: str, staff: bool, **options: Any) -> None:
        user = create_user(username=name, password=_password(), is_staff=staff)
        self.stdout.write(f"User {user.username} can sign in now.")


def _password() -> str:
    if password := os.environ.get(VARIABLE, ""):
        return password
    require(
        sys.stdin.isatty(),
        CommandError(f"Set {VARIABLE}, or run this where it can ask.", returncode=2),
    )
    password = getpass.getpass("Password: ")
    require(
        getpass.getpass("Once more: ") == password,
        CommandError("The two passwords differ.", returncode=2),
    )
    return password
