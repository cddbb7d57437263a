import json
import os
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from accounts.enrolment import add_address, create_user, password_link
from accounts.teams import create_team

VARIABLE = "NEW_USER_PASSWORD"


class Command(BaseCommand):
    help = (
        "Make a user who owns a team, such as the first. Prints a link with which they set a "
        f"password, unless the environment variable {VARIABLE} holds one."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="The name to sign in with.")
        parser.add_argument("--email", default="")
        parser.add_argument("--team", metavar="NAME", help="of a new team (default: NAME's team)")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    @transaction.atomic
    def handle(self, *args: Any, name: str, email: str, **options: Any) -> None:
        user = create_user(username=name, password=os.environ.get(VARIABLE) or None)
        if email:
            add_address(user=user, email=email)
        team = create_team(name=options["team"] or f"{name}'s team", owner=user)
        link = "" if user.has_usable_password() else password_link(user)
        facts = {"user": user.username, "team": team.slug, "link": link}
        if options["json"]:
            self.stdout.write(json.dumps(facts))
            return
        self.stdout.write(f"User {user.username} owns team '{team}' ({team.slug}).")
        if link:
            self.stdout.write(f"They set a password here, once and within a day:\n{link}")
