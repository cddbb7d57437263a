from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from annotation.models import Study


class Command(BaseCommand):
    help = (
        "Create an account to look around with, for a project's page: it sees everything of the "
        "named studies, and changes nothing. Its password is printed, and may be told to anybody. "
        "Again adds studies to it."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="To sign in with, such as demo.")
        parser.add_argument(
            "--study", action="append", required=True, metavar="SLUG", help="may be repeated"
        )

    def handle(self, *args: Any, name: str, study: list[str], **options: Any) -> None:
        from config.samples import create_demo_user  # imports much; --help needs none of it

        studies = [Study.objects.named(slug) for slug in study]
        password = create_demo_user(name=name, studies=studies)
        seen = ", ".join(each.slug for each in studies)
        self.stdout.write(f"{name} may look at {seen}, and changes nothing.")
        self.stdout.write(
            f"Password: {password}" if password else f"{name} keeps the password there was."
        )
