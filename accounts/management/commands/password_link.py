from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from accounts.audit import name_for_good, record
from accounts.enrolment import password_link
from accounts.models import User


class Command(BaseCommand):
    help = "Print a link with which a user sets a new password, once and within a day."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("user", metavar="USER")

    def handle(self, *args: Any, user: str, **options: Any) -> None:
        named = User.named(user)
        record(team=None, actor=None, action="member.password_link", subject=name_for_good(named))
        self.stdout.write(password_link(named))
