"""Practice at a marketplace: paid HITs with the study's own page, and the qualification that who
passes one is granted. They are planned with a batch, and published before its own HITs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from annotation.protocols.practice import n_attempts, practice_fingerprint
from annotation.protocols.records import Practice
from hits.endpoints import translated_errors
from hits.foreign_records import identifier
from hits.hit_creation import create_hit
from hits.models import Batch, PracticeHit
from hits.practice_pages import practice_page
from hits.qualification_types import create_type
from presentation.counts import count_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_mturk.client import MTurkClient
    from mypy_boto3_mturk.type_defs import QualificationRequirementTypeDef

# Of the qualification; who has none may practise.
PASSED, FAILED = 1, 0
# So that a name has at most 200 characters, and a HIT's title 128.
LONGEST_TITLE = 100


def practice_of(batch: Batch) -> Practice | None:
    """What its workers practise, if anything."""
    return batch.document.qualifications.practice


def create_practice_type(batch: Batch, client: MTurkClient) -> None:
    """Give a batch the qualification that its practice gives: one for all batches of the study
    with the same practice, so that who passed it once need not practise again."""
    practice = practice_of(batch)
    if practice is None or batch.practice_type_id:
        return
    title = _title(batch, practice)
    digest = f"{batch.study_id}-{practice_fingerprint(batch.document)[:12]}"
    n, percent = n_attempts(practice), practice.pass_percent
    batch.practice_type_id = create_type(
        client,
        name=f"{title[:LONGEST_TITLE]} – passed ({digest})",
        # Read on the marketplace by who has not practised yet, and by who did not pass.
        description=(
            f"Granted to who passes one of the HITs “{title}”: {percent} % of its answers must be "
            f"right. It can be tried {count_of(n, 'time')}, each at another HIT. Every one is paid "
            "and approved, passed or not. Who has not passed by then cannot do the HITs that ask "
            "for it, and can do all other work as before."
        ),
    )
    Batch.objects.filter(pk=batch.pk).update(practice_type_id=batch.practice_type_id)


def practice_requirements(batch: Batch) -> list[dict[str, Any]]:
    """What a batch's HITs require of practice."""
    if not batch.practice_type_id:
        return []
    return [_requirement(batch, "EqualTo", IntegerValues=[PASSED])]


def _requirement(batch: Batch, comparator: str, **values: Any) -> dict[str, Any]:
    return {"QualificationTypeId": batch.practice_type_id, "Comparator": comparator, **values}


def _title(batch: Batch, practice: Practice) -> str:
    return f"{practice.title}: {batch.title}"[:128]


def publish_practice(
    batch: Batch, client: MTurkClient, requirements: Sequence[QualificationRequirementTypeDef]
) -> list[PracticeHit]:
    """Publish what is unpublished of a batch's practice, for workers of whom `requirements` hold
    and who have no result yet; return what was published."""
    practice = practice_of(batch)
    rest = list(PracticeHit.objects.of(batch).unpublished())
    if practice is None or not rest:
        return []
    if not batch.practice_hit_type_id:
        batch.practice_hit_type_id = _create_hit_type(batch, client, practice, requirements)
        Batch.objects.filter(pk=batch.pk).update(practice_hit_type_id=batch.practice_hit_type_id)
    for hit in rest:
        hit.batch = batch  # one for all: a protocol is too much to read again for every HIT
        page = practice_page(batch.study, batch.document, hit.number)
        hit.hit_id = create_hit(client, hit, batch.practice_hit_type_id, page.html_question())
        PracticeHit.objects.filter(pk=hit.pk, hit_id="").update(hit_id=hit.hit_id)
    return rest


def _create_hit_type(
    batch: Batch,
    client: MTurkClient,
    practice: Practice,
    requirements: Sequence[QualificationRequirementTypeDef],
) -> str:
    unpractised: Any = _requirement(batch, "DoesNotExist") | {
        "ActionsGuarded": "DiscoverPreviewAndAccept"
    }
    with translated_errors():
        answer = client.create_hit_type(
            Title=_title(batch, practice),
            Description=(
                f"Paid practice for “{batch.title}”: the same page, with feedback on your answers. "
                "Pass it, and you may do the other HITs."
            ),
            Keywords=batch.keywords,
            Reward=f"{practice.reward_usd:.2f}",
            AssignmentDurationInSeconds=batch.assignment_duration_seconds,
            # Practice is paid however it went, as soon as it is handed in.
            AutoApprovalDelayInSeconds=0,
            QualificationRequirements=[*requirements, unpractised],
        )
    return identifier(answer, "HITTypeId")
