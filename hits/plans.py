from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.audit import record
from accounts.models import User
from annotation.check_placement import place_checks
from annotation.frames import add_to_item_sample, record_item_sample
from annotation.models import Item, ItemSample, Protocol, Study
from annotation.protocols.practice import practised_keys
from annotation.protocols.versions import (
    current_document,
    freeze,
    launch_faults,
    require_no_faults,
    standing_among,
    standing_version,
)
from hits.connections import site_connection
from hits.costs import price_items, price_launch, require_within_budgets, unsaved_practice
from hits.exceptions import BatchUnfit, LaunchedMeanwhile, QuestionTooLarge, require
from hits.models import Batch, Budget, Connection, Hit, PracticeHit
from hits.practice import practice_page_errors
from hits.questions import html_question
from hits.readiness import item_faults
from hits.requirements import exclude_workers
from hits.selections import RUN, items_without_hit, selected_items
from hits.studies import require_current
from metrics.models import ScoringRun


def place_batch_checks(batch: Batch, new_items: Sequence[int]) -> None:
    """Draw the checks of a batch's new pages, and test that the pages can be published with
    them. An item that had a HIT under the same version keeps its checks."""
    if batch.protocol is None or not batch.document.all_checks:
        return
    pages = Hit.objects.filter(batch__protocol=batch.protocol).order_by().values("item")
    earlier = set(pages.exclude(batch=batch).values_list("item", flat=True))
    placed = place_checks(
        protocol=batch.protocol,
        new_items=[pk for pk in new_items if pk not in earlier],
        n_items=Item.objects.filter(pk__in=pages).count(),
    )
    for item_id in sorted({row.item_id for row in placed}):
        item = Item.objects.select_related("study", "picture").get(pk=item_id)
        try:
            html_question(item, batch.document, [row for row in placed if row.item_id == item_id])
        except QuestionTooLarge as error:
            raise BatchUnfit(_("With its quality checks: {error}").format(error=error)) from None


def draft_batch(
    *,
    study: Study,
    title: str,
    description: str,
    reward_usd: Decimal,
    connection: Connection | None = None,
    **settings: Any,
) -> Batch:
    # Checked, and not stored. Without a selection it is of all items; without a connection, on
    # this site's marketplace.
    require(
        is_in_cents(reward_usd),
        BatchUnfit(
            _("A reward of ${reward_usd} is not an amount in whole cents.").format(
                reward_usd=reward_usd
            ),
            code="reward",
        ),
    )
    batch = Batch(
        study=study,
        title=title,
        description=description,
        reward_usd=reward_usd,
        connection=connection or site_connection(),
        **settings,
    )
    try:
        # Whether such a batch is there is for plan_batch to see, under a lock.
        batch.full_clean(validate_constraints=False)
    except ValidationError as error:
        faults = " ".join(f"{name}: {' '.join(each)}" for name, each in error.message_dict.items())
        raise BatchUnfit(
            _("The batch cannot be published. {faults}").format(faults=faults), code="settings"
        ) from None
    _require_pages(study)
    require_no_faults(launch_faults(study))
    # Of practice without faults alone: what it names in the study is there.
    if errors := practice_page_errors(study, current_document(study)):
        raise BatchUnfit(" ".join(errors))
    return batch


def is_in_cents(amount: Decimal) -> bool:
    exponent = amount.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= -2 and amount >= 0


def _require_pages(study: Study) -> None:
    require(
        study.items.exists(),
        BatchUnfit(
            _("Study '{study}' has no items; import some first.").format(study=study.slug),
            code="no_items",
        ),
    )
    for _item, error in item_faults(study):
        raise error


@dataclass(frozen=True)
class Plan:
    batch: Batch
    is_new: bool


@transaction.atomic
def plan_batch(
    *,
    draft: Batch,
    part: int | None = None,
    n_items: int | None = None,
    excluded_workers: Iterable[str] = (),
    budget_usd: Decimal | None = None,
    launched_by: User | None = None,
) -> Plan:
    """Store a drafted batch with its HITs, or return the one that was planned for the same;
    planners wait for each other's lock. `part` numbers the batch within its round: of two
    launches of one part, the second returns the first batch, or is refused if it asks for
    something else. Without it, a batch of the same selection is the same. `n_items` is the
    confirmed number of items."""
    study = Study.objects.select_for_update(of=("self",)).get(pk=draft.study_id)
    require_current(study)
    beside = list(Batch.objects.parts_beside(draft).select_related("study"))
    if earlier := _earlier_batch(draft, beside, part):
        return Plan(earlier, is_new=False)
    items = selected_items(draft)
    require(
        items,
        BatchUnfit(
            _(
                "Every item of study '{study}' has a HIT in round {round} already. "
                "Begin round {next_round}, or import items."
            ).format(study=study.slug, round=draft.round, next_round=draft.round + 1),
            code="nothing_left",
        ),
    )
    require(
        n_items in (None, len(items)),
        LaunchedMeanwhile(
            _(
                "What would be launched has changed (items before: {n_before}, now: {n}). "
                "Nothing was launched: look at it again."
            ).format(n_before=n_items, n=len(items)),
            code="changed_since",
        ),
    )
    cost = price_launch(draft, n_items=len(items))
    draft.item_sample = _record_sample(draft, items)
    draft.part = beside[-1].part + 1 if beside else 1
    draft.launched_by = launched_by
    draft.protocol = freeze(study=study, actor=launched_by)
    draft.save(force_insert=True)
    if budget_usd is not None:
        # Not by set_budget, whose entry in the audit log would be locked before the budgets are.
        Budget.objects.create(batch=draft, cap_usd=budget_usd)
    # Its HITs are not there yet, so they are not among what is committed.
    require_within_budgets(study=study, extra_usd_by_batch={draft.pk: cost.total_usd})
    _store_hits(draft, list(items))
    _store_practice(draft)
    place_batch_checks(draft, list(items))
    exclude_workers(batch=draft, worker_ids=excluded_workers)
    record(
        team=study.team,
        actor=launched_by,
        action="batch.launch",
        subject=study.slug,
        details={
            "batch": draft.pk,
            "connection": draft.connection.name,
            "reward_usd": f"{draft.reward_usd:.2f}",
            "assignments": cost.n_assignments,
            "total_usd": f"{cost.total_usd:.2f}",
            "budget_usd": None if budget_usd is None else f"{budget_usd:.2f}",
        },
    )
    return Plan(draft, is_new=True)


def _record_sample(draft: Batch, items: dict[int, float | None]) -> ItemSample:
    selection, methods = draft.selection, ItemSample.Method
    run = ScoringRun.objects.filter(pk=selection.get(RUN)).first()
    method = methods.RANDOM if "n" in selection else methods.ALL
    method = methods.LISTED if "keys" in selection else method
    return record_item_sample(
        study=draft.study,
        probabilities=items,
        round=draft.round,
        method=methods.UNSURE if run else method,
        seed=selection.get("seed"),
        judge=run.signature if run else "",
        question_id=selection.get("question"),
        n_available=items_without_hit(draft).count(),
    )


def version_warning(draft: Batch, batches: Iterable[Batch], versions: Iterable[Protocol]) -> str:
    versions = list(versions)
    numbers: dict[int | None, int] = {version.pk: version.number for version in versions}
    own = numbers.get(draft.protocol_id)
    if own is None:
        standing = standing_among(versions)
        own = standing.number if standing else max(numbers.values(), default=1)
    others = [
        (batch.pk, numbers[batch.protocol_id])
        for batch in batches
        if batch.round == draft.round and numbers.get(batch.protocol_id, own) != own
    ]
    if not others:
        return ""
    batch, number = min(others)
    return _(
        "This launch is of version %(own)s of the protocol, but batch %(batch)s of the same round "
        "was of version %(number)s. Their answers are reported together unless a version is "
        "chosen. Look at what changed, or begin another round."
    ) % {"own": own, "batch": batch, "number": number}


def _earlier_batch(draft: Batch, beside: Sequence[Batch], part: int | None) -> Batch | None:
    if part is not None:
        same = next((batch for batch in beside if batch.part == part), None)
        if same is not None and not (_is_same_launch(same, draft) and _is_standing(same)):
            raise LaunchedMeanwhile(
                _(
                    "Something else of this study was launched meanwhile (batch {batch}). "
                    "Nothing was launched now: look at what is left, and launch again."
                ).format(batch=same.pk),
                code="launched_meanwhile",
            )
        return same
    same = batch_like(draft, beside)
    if same is not None:
        require_same_terms(same, reward_usd=draft.reward_usd, max_assignments=draft.max_assignments)
    return same


def batch_like(draft: Batch, beside: Sequence[Batch] | None = None) -> Batch | None:
    if beside is None:
        beside = list(Batch.objects.parts_beside(draft).select_related("study", "connection"))
    alike = (batch for batch in beside if batch.selection == draft.selection)
    same = next(filter(_is_standing, alike), None)
    if same is None and beside and draft.is_of_all_items:
        same = None if items_without_hit(draft).exists() else beside[-1]
    return same


def _is_standing(batch: Batch) -> bool:
    standing = standing_version(batch.study)
    return batch.protocol_id == (None if standing is None else standing.pk)


def _is_same_launch(earlier: Batch, draft: Batch) -> bool:
    names = (
        *("selection", "reward_usd", "max_assignments", "title", "description", "keywords"),
        *("assignment_duration_seconds", "lifetime_seconds", "auto_approval_delay_seconds"),
        *(
            "is_recruited",
            "is_invited",
            "requirements",
            "needs_masters",
            "max_per_worker",
            "wave_size",
            "excluded_rounds",
        ),
    )
    return all(getattr(earlier, name) == getattr(draft, name) for name in names)


def require_same_terms(batch: Batch, *, reward_usd: Decimal, max_assignments: int) -> None:
    require(
        (batch.reward_usd, batch.max_assignments) == (reward_usd, max_assignments),
        BatchUnfit(
            _(
                "Round {round} of study '{study}' is batch {batch}, with --reward "
                "{reward_usd} and --assignments {max_assignments}. Repeat those to go on "
                "with it, or begin --round {next_round}."
            ).format(
                round=batch.round,
                study=batch.study.slug,
                batch=batch.pk,
                reward_usd=batch.reward_usd,
                max_assignments=batch.max_assignments,
                next_round=batch.round + 1,
            ),
            code="round_exists",
        ),
    )


@transaction.atomic
def add_hits(*, batch: Batch) -> None:
    study = Study.objects.select_for_update(of=("self",)).get(pk=batch.study_id)
    require_current(study)
    items = list(items_without_hit(batch).values_list("pk", flat=True))
    if items:
        if batch.item_sample is not None:
            add_to_item_sample(sample=batch.item_sample, probabilities=dict.fromkeys(items, 1.0))
        require_within_budgets(
            study=study,
            extra_usd_by_batch={batch.pk: price_items(batch, n_items=len(items)).total_usd},
        )
        _store_hits(batch, items)
        place_batch_checks(batch, items)


def _store_practice(batch: Batch) -> None:
    keys = practised_keys(batch.document)
    items = dict(batch.study.items.filter(key__in=keys).values_list("key", "pk")) if keys else {}
    hits = unsaved_practice(batch)
    for hit in hits:
        hit.item_id = items.get(keys[hit.number])
    PracticeHit.objects.bulk_create(hits)


def _store_hits(batch: Batch, items: Sequence[int]) -> None:
    hits = (
        Hit(
            batch=batch,
            item_id=item,
            wave=wave,
            max_assignments=None if batch.n_waves == 1 else batch.wave_assignments(wave),
        )
        for wave in range(1, batch.n_waves + 1)
        for item in items
    )
    Hit.objects.bulk_create(hits, batch_size=1000)
