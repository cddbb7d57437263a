import json
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from results.computing import find_job_result, request_result
from results.kinds import NoSettings, result_kinds
from results.settings import Inputs, list_settings
from results.shown import ShownResult
from work.execution import run_job
from work.models import Job


class Command(BaseCommand):
    help = "Compute a result, such as `compute_result reuse COLLECTION`, and print it."

    def add_arguments(self, parser: CommandParser) -> None:
        kinds = parser.add_subparsers(dest="kind", metavar="KIND", required=True)
        for name, kind in result_kinds().items():
            if kind.inputs or kind.settings is not NoSettings:
                of_kind = kinds.add_parser(name, help=str(kind.title))
                of_kind.add_argument("subject", help="short name, such as a collection's")
                for each, one in kind.inputs.items():
                    one.add_option(of_kind, each)
                for each, (described, default) in list_settings(kind.settings).items():
                    described.add_option(of_kind, each, default)
                of_kind.add_argument("--json", action="store_true", help="print JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        kind = result_kinds()[options["kind"]]
        try:
            subject = kind.find_subject(options["subject"])
            offered = kind.offer_inputs(subject)
            chosen = {
                name: _choose(one, offered[name], options[name], name)
                for name, one in kind.inputs.items()
            }
            settings = {name: options[name] for name in list_settings(kind.settings)}
            job = request_result(
                kind=kind, subject=subject, chosen=chosen, settings=settings, actor=None
            )
        except kind.refusals as refused:
            raise CommandError(str(refused)) from refused
        run_job(job.pk)
        job.refresh_from_db()
        if job.state != Job.State.DONE:
            raise CommandError(job.message or f"Job {job.pk} is {job.get_state_display()}.")
        shown = ShownResult(find_job_result(kind, job))
        record = shown.export() | shown.summarize() if options["json"] else None
        self.stdout.write(json.dumps(record, indent=1) if record else shown.write_text())


def _choose(one: Inputs, offered: Sequence[Any], named: Any, name: str) -> list[Any]:
    try:
        return one.choose(offered, named)
    except ValueError as unknown:
        raise CommandError(f"--{name}: {unknown}") from None
