import json
from argparse import ArgumentTypeError
from decimal import Decimal
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from annotation.models import Study
from hits.connections import client_of, connection_of_name, site_connection
from hits.costs import Estimate, estimate, require_funds
from hits.endpoints import MTurkClient
from hits.exceptions import FundsMissing
from hits.limits import THIS_SITE
from hits.models import Batch
from hits.page_rendering import default_texts
from hits.plans import (
    Plan,
    batch_like,
    draft_batch,
    plan_batch,
    require_same_terms,
    version_warning,
)
from hits.publications import publish_batch
from hits.requirements import MINUTES_OF_A_HIT, country_error, protocol_terms, requirements
from hits.selections import ALL_ITEMS, of_round, sample
from hits.wages import study_texts
from presentation.numbers import count_of, read_usd
from presentation.progress import bar


class Command(BaseCommand):
    help = (
        "Publish a study's items as HITs, or a sample of them, once a round. Run again, it goes "
        "on where it was: after a failure, or with items imported since."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", metavar="SLUG")
        parser.add_argument("--reward", type=_usd, required=True, metavar="USD")
        parser.add_argument(
            "--assignments", type=int, help="workers per item (default: the protocol's, or 3)"
        )
        parser.add_argument("--title", help="of the HITs (default: the protocol's)")
        parser.add_argument("--description", help="(default: from the protocol)")
        parser.add_argument("--keywords", help="(default: from the protocol)")
        parser.add_argument(
            "--minutes", type=int, help=f"to finish one HIT (the protocol's, or {MINUTES_OF_A_HIT})"
        )
        parser.add_argument("--days", type=int, default=7, help="that the HITs are on offer")
        parser.add_argument("--round", type=int, default=1)
        parser.add_argument("--dry-run", action="store_true", help="say what it would cost")
        parser.add_argument("--json", action="store_true", help="the report as JSON")
        _add_where(parser)
        _add_workers(parser)

    def handle(self, *args: Any, study: str, dry_run: bool, **options: Any) -> None:
        row = Study.objects.named(study)
        batch = _planned_or_draft(row, _with_terms_of_protocol(row, options))
        warning = version_warning(
            batch, Batch.objects.of(row).exclude(pk=batch.pk), row.protocols.all()
        )
        options["warnings"] = [warning] if warning else []
        if warning and not options["json"]:
            self.stderr.write(f"Warning: {warning}")
        if dry_run:
            self._report(options, "Would publish {cost}. Nothing was published.", estimate(batch))
            return
        client = client_of(batch.connection)
        plan = _plan(batch, client, options)
        if not plan.is_new and not options["json"]:
            self.stdout.write(
                f"Round {plan.batch.round} of study '{study}' is batch {plan.batch.pk} already; "
                "this goes on with it."
            )
        publication = publish_batch(
            batch=plan.batch,
            client=client,
            progress=bar("publishing"),
            is_checking_funds=True,
            on_wait=self._report_waiting,
        )
        hits = count_of(publication.n_hits, "HIT")
        self._report(
            options,
            f"Published {hits} of batch {plan.batch.pk} ({{cost}}).",
            publication.cost,
            plan.batch,
        )

    def _report(
        self, options: dict[str, Any], sentence: str, cost: Estimate, batch: Batch | None = None
    ) -> None:
        if not options["json"]:
            self.stdout.write(sentence.format(cost=cost))
            return
        self.stdout.write(
            json.dumps(
                {
                    "batch": batch.pk if batch else None,
                    "part": batch.part if batch else None,
                    "hits": cost.n_hits,
                    "assignments": cost.n_assignments,
                    "rewards_usd": f"{cost.rewards_usd:.2f}",
                    "fees_usd": f"{cost.fees_usd:.2f}",
                    "practice_usd": f"{cost.practice_usd:.2f}",
                    "total_usd": f"{cost.total_usd:.2f}",
                    "warnings": options["warnings"],
                }
            )
        )

    def _report_waiting(self, batch: Batch) -> None:
        self.stderr.write(f"Another command is publishing batch {batch.pk}; waiting for it.")


def _add_where(parser: CommandParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--profile", default=THIS_SITE, help="this site's own marketplace: local")
    group.add_argument("--connection", metavar="TEAM/NAME", help="of a team's connections")
    parser.add_argument("--items", type=int, metavar="N", help="a sample of so many items")
    parser.add_argument("--seed", type=int, default=7, help="that the sample is drawn by")
    parser.add_argument(
        "--of-round", type=int, metavar="ROUND", help="only items that had a HIT in that round"
    )
    parser.add_argument("--budget", type=_usd, metavar="USD", help="the most the batch may cost")


def _add_workers(parser: CommandParser) -> None:
    parser.add_argument("--masters", action="store_true", help="Masters only, for a higher fee")
    parser.add_argument("--country", action="append", default=[], type=_country, metavar="CODE")
    parser.add_argument("--language", action="append", default=[], metavar="CODE")
    parser.add_argument("--min-approval", type=int, metavar="PERCENT", help="approval rate")
    parser.add_argument("--min-approved", type=int, metavar="N", help="HITs approved before")
    parser.add_argument("--max-per-worker", type=int, metavar="N", help="HITs of the round")
    parser.add_argument(
        "--waves", type=int, metavar="SIZE", help="assignments a HIT, an item's HITs in turn"
    )
    parser.add_argument("--exclude-rounds", type=int, nargs="+", default=[], metavar="ROUND")
    parser.add_argument("--exclude-list", type=Path, metavar="FILE", help="a WorkerId a line")


def _with_terms_of_protocol(study: Study, options: dict[str, Any]) -> dict[str, Any]:
    terms = protocol_terms(study)
    worker_terms = {
        "country": options["country"] or terms.countries,
        "language": options["language"] or terms.languages,
        "min_approval": _or(options["min_approval"], terms.min_approval_percent),
        "min_approved": _or(options["min_approved"], terms.min_approved),
        "max_per_worker": _or(options["max_per_worker"], terms.max_per_worker),
    }
    hit_terms = {
        "assignments": _or(options["assignments"], terms.max_assignments),
        "minutes": _or(options["minutes"], terms.minutes),
    }
    return options | worker_terms | hit_terms


def _or(option: int | None, term: int | None) -> int | None:
    return term if option is None else option


def _planned_or_draft(study: Study, options: dict[str, Any]) -> Batch:
    name = options["connection"]
    connection = connection_of_name(name) if name else site_connection(options["profile"])
    items = options["items"]
    selection = ALL_ITEMS if items is None else sample(items, options["seed"])
    if options["of_round"]:
        selection = of_round(selection, options["of_round"])
    batch = batch_like(
        Batch(study=study, connection=connection, round=options["round"], selection=selection)
    )
    if batch is not None:
        require_same_terms(
            batch, reward_usd=options["reward"], max_assignments=options["assignments"]
        )
        return batch
    return draft_batch(
        study=study,
        **{
            name: text if options[name] is None else options[name]
            for name, text in default_texts(study_texts(study)).items()
        },
        reward_usd=options["reward"],
        max_assignments=options["assignments"],
        assignment_duration_seconds=options["minutes"] * 60,
        lifetime_seconds=options["days"] * 24 * 3600,
        round=options["round"],
        connection=connection,
        selection=selection,
        requirements=requirements(
            countries=options["country"],
            languages=options["language"],
            min_approval_percent=options["min_approval"],
            min_approved=options["min_approved"],
        ),
        needs_masters=options["masters"],
        max_per_worker=options["max_per_worker"],
        wave_size=options["waves"],
        excluded_rounds=options["exclude_rounds"],
    )


def _plan(batch: Batch, client: MTurkClient, options: dict[str, Any]) -> Plan:
    if batch.pk:
        return Plan(batch, is_new=False)
    try:
        require_funds(cost=estimate(batch), client=client)
    except FundsMissing:
        # The money may be gone into this very batch, planned by another command meanwhile.
        if batch_like(batch) is None:
            raise
    return plan_batch(
        draft=batch, excluded_workers=_listed_keys(options), budget_usd=options["budget"]
    )


def _listed_keys(options: dict[str, Any]) -> list[str]:
    file: Path | None = options["exclude_list"]
    if file is None:
        return []
    try:
        return file.read_text(encoding="utf-8").split()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} cannot be read: {error}", returncode=2) from error


def _usd(text: str) -> Decimal:
    try:
        return read_usd(text)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None


def _country(text: str) -> str:
    if error := country_error(text):
        raise ArgumentTypeError(error)
    return text
