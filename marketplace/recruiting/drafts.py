"""Studies of a HIT type's HITs as drafts at a recruiter that has an API: written down here, sent,
discarded.

Everything is written here first. A draft whose answer was lost is looked for by our token, which
is its internal name there.
"""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial

from django.conf import settings
from django.db import transaction
from django.urls import reverse
from django.utils.translation import gettext as _

from marketplace import clock
from marketplace.audit_log import note
from marketplace.exceptions import InvalidParameter, require
from marketplace.models import HitType, RecruitedStudy, RecruiterConnection
from marketplace.money.amounts import CENT
from marketplace.recruiting.charges import MOST_REWARD
from marketplace.recruiting.connections import require_turn, required_recruiter
from marketplace.recruiting.participants import blocked_group_of, group_of
from marketplace.recruiting.places import places_for, require_work
from marketplace.recruiting.prolific.recruiter import Prolific
from marketplace.recruiting.records import (
    Cost,
    Filter,
    NotFound,
    PostedStudy,
    RecruiterProblem,
    StudyState,
    Uncertain,
)
from marketplace.recruiting.studies import MOST_ITEMS, PROLIFIC, create_codes
from marketplace.users import User

# Whom a recruiter invites, as a requester writes it: a filter a line, by the recruiter's names.
#
#     age = 18..65
#     current-country-of-residence = 1, 45
#
# What a filter is called and which values it has is the recruiter's to say, when the draft is sent.

MOST_FILTERS = 30
LONGEST_LINE = 1000
EXCLUDING = "participant_group_blocklist"
LABELS = (
    *("survey", "writing_task", "annotation", "decision_making_task", "interview", "other"),
    *(
        "ai_annotation",
        "ai_evaluation",
        "ai_reasoning",
        "ai_fact_checking",
        "ai_safety",
        "ai_other",
    ),
)
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
NUMBER = r"-?[0-9]{1,9}(?:\.[0-9]{1,4})?"
RANGE = re.compile(rf"({NUMBER})?\s*\.\.\s*({NUMBER})?")


def filters_of(lines: Iterable[str]) -> tuple[Filter, ...]:
    filters = tuple(map(filter_of, lines))
    names = [one.filter_id for one in filters]
    require(
        len(names) <= MOST_FILTERS,
        InvalidParameter(
            _("A study has at most %(n)s filters.") % {"n": MOST_FILTERS}, code="too_many_filters"
        ),
    )
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InvalidParameter(
            _("The filter %(name)s is there twice.") % {"name": twice}, code="repeated_filter"
        )
    return filters


def filter_of(line: str) -> Filter:
    name, _equals, right = (part.strip() for part in line.partition("="))
    is_line = right and len(line) <= LONGEST_LINE and line.isprintable()
    if not NAME.fullmatch(name) or not is_line:
        text = _("A filter is a name and its values, as in age = 18..65, not “%(line)s”.")
        raise InvalidParameter(text % {"line": line[:80]}, code="bad_filter")
    require(
        name != EXCLUDING,
        InvalidParameter(
            _("Whose participants may not come is said by naming those studies."),
            code="excluding_filter",
        ),
    )
    if name.startswith("custom_"):
        # They list participants, whose ids are kept with their sessions and nowhere else.
        raise InvalidParameter(
            _("The filter %(name)s lists participants: set it at the recruiter.") % {"name": name},
            code="listing_filter",
        )
    if ends := RANGE.fullmatch(right):
        return _range(name, *ends.groups())
    return Filter(name, values=tuple(one.strip() for one in right.split(",") if one.strip()))


def _range(name: str, lower: str | None, upper: str | None) -> Filter:
    low, high = (None if end is None else Decimal(end) for end in (lower, upper))
    if (low is None and high is None) or (low is not None and high is not None and low > high):
        raise InvalidParameter(
            _("The range of the filter %(name)s is empty.") % {"name": name}, code="empty_range"
        )
    return Filter(name, lower=low, upper=high)


MOST_MINUTES = 1439
MOST_PLACES = 100_000
MOST_EXCLUDED = 20
DEVICES = ("desktop", "tablet", "mobile")


@dataclass(frozen=True)
class Posting:
    # What a requester decides about a posted study.
    reward: Decimal
    minutes: int
    items_per_session: int = 1
    places: int = 0  # 0: as many as the judgments that are wanted need
    devices: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()  # lines, such as age = 18..65
    labels: tuple[str, ...] = ()
    screen_out_reward: Decimal | None = None  # of whoever may not take part; None: nothing
    screen_out_places: int = 0  # how many are paid so at most
    annotation_prefix: str = ""  # of the HIT type's HITs those whose annotation begins so
    excluded: tuple[RecruitedStudy, ...] = ()  # whose participants may not take part


def draft_study(
    *,
    connection: RecruiterConnection,
    hit_type: HitType,
    values: Posting,
    user: User | None = None,
) -> tuple[RecruitedStudy, Cost]:
    required_recruiter(connection)
    study = write_draft(connection=connection, hit_type=hit_type, values=values, user=user)
    return study, send_draft(study=study)


@transaction.atomic
def write_draft(
    *,
    connection: RecruiterConnection,
    hit_type: HitType,
    values: Posting,
    user: User | None = None,
    request_token: str = "",
) -> RecruitedStudy:
    places = values.places
    if not places and 1 <= values.items_per_session <= MOST_ITEMS:
        places = places_for(hit_type, values.items_per_session, values.annotation_prefix)
    _check(connection, hit_type, values, places)
    study = RecruitedStudy.objects.create(
        requester=hit_type.requester,
        connection=connection,
        hit_type=hit_type,
        annotation_prefix=values.annotation_prefix,
        name=hit_type.title[:100],
        state=RecruitedStudy.State.DRAFT,
        items_per_session=values.items_per_session,
        maximum_seconds=60 * most_minutes(values.minutes),
        reward=values.reward,
        minutes=values.minutes,
        places=places,
        devices=list(values.devices),
        filters=list(values.filters),
        labels=list(values.labels),
        screen_out_reward=values.screen_out_reward,
        screen_out_places=values.screen_out_places,
        request_token=request_token,
        created_at=clock.now(),
        **{name: value for name, value in PROLIFIC.items() if name.endswith("_parameter")},
    )
    study.excluded.set(values.excluded)
    create_codes(study, redirect_url=PROLIFIC["redirect_url"])
    note("study.draft", subject=study.name, user=user, requester=study.requester)
    return study


def send_draft(*, study: RecruitedStudy) -> Cost:
    """Create the draft at the recruiter once; return its cost there."""
    recruiter = required_recruiter(study.connection)
    assert study.reward is not None
    try:
        cost = with_screen_outs(study, recruiter, recruiter.cost(study.reward, study.places))
        if not study.external_id:
            require_turn()
            posted = _posted(recruiter, study).id
            # Whoever disconnects and connects again meanwhile lets another process draft it.
            require_turn()
            RecruitedStudy.objects.filter(pk=study.pk, external_id="").update(external_id=posted)
            study.refresh_from_db(fields=["external_id"])
    except RecruiterProblem as problem:
        raise InvalidParameter(str(problem), code=problem.code) from problem
    study.save_values(quoted_places=study.places, quoted_cost=cost.total)
    return cost


def with_screen_outs(study: RecruitedStudy, recruiter: Prolific, cost: Cost) -> Cost:
    if study.screen_out_reward is None:
        return cost
    return Cost(
        cost.total + recruiter.cost(study.screen_out_reward, study.screen_out_places).total,
        cost.currency,
    )


def discard_draft(*, study: RecruitedStudy, user: User | None = None) -> None:
    recruiter = required_recruiter(study.connection)
    try:
        if study.external_id:
            require(
                recruiter.study(study.external_id).state == StudyState.DRAFT,
                InvalidParameter(_("It is published: it can be stopped, not discarded.")),
            )
            recruiter.delete_draft(study.external_id)
    except NotFound:
        pass  # by an earlier try whose answer was lost, or by a person there
    except RecruiterProblem as problem:
        raise InvalidParameter(str(problem), code=problem.code) from problem
    with transaction.atomic():
        RecruitedStudy.objects.filter(pk=study.pk).update(
            state=RecruitedStudy.State.STOPPED, external_id=""
        )
        note("study.discard", subject=study.name, user=user, requester=study.requester)


def most_minutes(minutes: int) -> int:
    """The shortest maximum time that Prolific accepts: 2 + 2t + 2 √t."""
    return math.ceil(2 + 2 * minutes + 2 * math.sqrt(minutes))


def _check(
    connection: RecruiterConnection, hit_type: HitType, values: Posting, places: int
) -> None:
    require(
        connection.requester_id == hit_type.requester_id,
        InvalidParameter(_("A study is of a HIT type of the requester's own.")),
    )
    require(
        1 <= values.items_per_session <= MOST_ITEMS,
        InvalidParameter(_("A participation has 1 to %(n)s HITs.") % {"n": MOST_ITEMS}),
    )
    require(
        0 <= places <= MOST_PLACES,
        InvalidParameter(_("A study has at most %(n)s places.") % {"n": f"{MOST_PLACES:,}"}),
    )
    require(
        values.minutes >= 1 and most_minutes(values.minutes) <= MOST_MINUTES,
        InvalidParameter(
            _("A participation takes from a minute to less than a day."), code="bad_minutes"
        ),
    )
    require(
        0 < values.reward <= MOST_REWARD and values.reward == values.reward.quantize(CENT),
        InvalidParameter(
            _("The reward is an amount of whole pence or cents above 0."), code="bad_reward"
        ),
    )
    require(
        set(values.devices) <= set(DEVICES),
        InvalidParameter(
            _("Devices are %(names)s.") % {"names": ", ".join(DEVICES)}, code="bad_devices"
        ),
    )
    _check_invited(values)
    _check_screen_out(values)
    _check_excluded(connection, values)
    require_work(
        RecruitedStudy(
            hit_type=hit_type,
            annotation_prefix=values.annotation_prefix,
            items_per_session=values.items_per_session,
        ),
        max(1, places),
    )


def _check_invited(values: Posting) -> None:
    filters_of(values.filters)
    if unknown := sorted(set(values.labels) - set(LABELS)):
        raise InvalidParameter(
            _("There is no label %(name)s; labels are %(names)s.")
            % {"name": unknown[0], "names": ", ".join(LABELS)},
            code="unknown_label",
        )


def _check_screen_out(values: Posting) -> None:
    pay, places = values.screen_out_reward, values.screen_out_places
    if pay is None and not places:
        return
    if pay is None or not 1 <= places <= MOST_PLACES:
        raise InvalidParameter(
            _("Pay for who is screened out is an amount, and how many get it at most."),
            code="incomplete_screen_out",
        )
    require(
        0 < pay < values.reward and pay == pay.quantize(CENT),
        InvalidParameter(
            _("Pay for who is screened out is less than the reward, in whole pence or cents."),
            code="bad_screen_out",
        ),
    )


def _check_excluded(connection: RecruiterConnection, values: Posting) -> None:
    require(
        len(values.excluded) <= MOST_EXCLUDED,
        InvalidParameter(
            _("A study excludes the participants of at most %(n)s others.") % {"n": MOST_EXCLUDED}
        ),
    )
    require(
        not any(one.connection_id != connection.pk for one in values.excluded),
        InvalidParameter(_("Participants are known again at one recruiter's account only.")),
    )


def _posted(recruiter: Prolific, study: RecruitedStudy) -> PostedStudy:
    project = study.connection.settings.get("project", "")
    if project and (earlier := recruiter.find_studies(study.token, project)):
        return earlier[0]
    url = f"{settings.SITE_URL}{reverse('marketplace:arrive', args=[study.token])}"
    draft = partial(recruiter.draft, study, _filters(recruiter, study), url=url, project=project)
    try:
        return draft()
    except Uncertain:
        found = recruiter.find_studies(study.token, project) if project else ()
        return found[0] if found else draft()


def _filters(recruiter: Prolific, study: RecruitedStudy) -> tuple[Filter, ...]:
    groups = [group_of(recruiter, one) for one in study.excluded.order_by("pk")]
    blocked = blocked_group_of(recruiter, study.connection)
    return (*filters_of(study.filters), Filter(EXCLUDING, values=(*groups, blocked)))
