import json
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from django.http import HttpRequest

from marketplace.exceptions import (
    ChannelDoesNotExist,
    HitTypeDoesNotExist,
    InvalidParameter,
    first_or_raise,
    require,
)
from marketplace.models import Hit, HitType, RecruitedStudy, RecruiterConnection, Requester
from marketplace.recruiting.drafts import LABELS, LONGEST_LINE, MOST_EXCLUDED, MOST_FILTERS, Posting
from marketplace.recruiting.studies import MOST_ITEMS, find_study


def read_object(request: HttpRequest) -> dict[str, Any]:
    """The body, whose texts a database can store. Raises InvalidParameter."""
    try:
        content = json.loads(request.body)
        # Half a character, such as "\ud800", is JSON and no text.
        json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise InvalidParameter("The body is not JSON.") from error
    if not isinstance(content, dict):
        raise InvalidParameter("The body is not a JSON object.")
    require(
        not any("\x00" in text for text in _texts_in(content)),
        InvalidParameter("The body has a NUL character in a text.", code="nul_character"),
    )
    return content


def _texts_in(content: Any) -> Iterator[str]:
    # Recursion is safe: json.loads refuses deep nesting.
    if isinstance(content, str):
        yield content
    elif isinstance(content, dict):
        for key, value in content.items():
            yield key
            yield from _texts_in(value)
    elif isinstance(content, list):
        for value in content:
            yield from _texts_in(value)


# What a request about recruiting says, checked: texts, numbers, and what of the requester's own
# they name.

MOST_AMOUNT = Decimal(10_000_000)
LONGEST_ID = 64
MISSING: Any = object()


class Body:
    def __init__(self, request: HttpRequest) -> None:
        self._content = read_object(request)

    def text(self, name: str, *, most: int, default: Any = MISSING) -> str:
        value = self._value(name, default)
        if value == default:
            return str(value)
        if not isinstance(value, str) or not 0 < len(value) <= most:
            raise InvalidParameter(
                f"'{name}' must be a text of 1 to {most} characters.", code="bad_text"
            )
        return value

    def texts(self, name: str, *, most: int, longest: int = LONGEST_ID) -> list[str]:
        values = self._value(name, [])
        are_texts = isinstance(values, list) and all(isinstance(one, str) for one in values)
        require(
            are_texts and len(values) <= most and not any(len(one) > longest for one in values),
            InvalidParameter(
                f"'{name}' must be a list of at most {most} short texts.", code="bad_list"
            ),
        )
        return list(values)

    def integer(self, name: str, *, least: int, most: int, default: Any = MISSING) -> int:
        value = self._value(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InvalidParameter(
                f"'{name}' must be a whole number from {least} to {most}.", code="bad_number"
            )
        return value

    def integers(self, name: str, *, most: int) -> list[int]:
        values = self._value(name, [])
        is_list = isinstance(values, list) and len(values) <= most
        if not is_list or any(type(one) is not int or not 0 <= one < 2**62 for one in values):
            raise InvalidParameter(
                f"'{name}' must be a list of at most {most} whole numbers.", code="bad_list"
            )
        return list(values)

    def boolean_if_any(self, name: str) -> bool | None:
        return None if self._value(name, None) is None else self.boolean(name)

    def boolean(self, name: str) -> bool:
        value = self._value(name, MISSING)
        if not isinstance(value, bool):
            raise InvalidParameter(f"'{name}' must be true or false.", code="bad_boolean")
        return value

    def choice(self, name: str, known: Sequence[str]) -> str:
        value = self._value(name, MISSING)
        require(
            value in known,
            InvalidParameter(
                f"'{name}' must be one of: {', '.join(known)}.", code="unknown_choice"
            ),
        )
        return str(value)

    def amount_if_any(self, name: str) -> Decimal | None:
        return None if self._value(name, None) is None else self.amount(name)

    def amount(self, name: str) -> Decimal:
        value = self._value(name, MISSING)
        try:
            amount = Decimal(value) if isinstance(value, str) and len(value) <= 20 else None
        except InvalidOperation:
            amount = None
        if amount is None or not amount.is_finite() or not 0 <= amount <= MOST_AMOUNT:
            raise InvalidParameter(
                f"'{name}' must be an amount as a text, such as \"12.50\".", code="bad_amount"
            )
        return amount

    def _value(self, name: str, default: Any) -> Any:
        value = self._content.get(name, default)
        require(
            value is not MISSING,
            InvalidParameter(f"The body lacks '{name}'.", code="missing_member"),
        )
        return value


def recruiter_of(requester: Requester, body: Body) -> RecruiterConnection:
    key = body.text("recruiter", most=LONGEST_ID)
    return first_or_raise(
        RecruiterConnection.objects.filter(requester=requester, public_id=key).select_related(
            "requester"
        ),
        InvalidParameter(f"There is no recruiter {key}.", code="unknown_recruiter"),
    )


def study_of(requester: Requester, body: Body) -> RecruitedStudy:
    return find_study(requester, body.text("study", most=LONGEST_ID))


def hit_type_of(requester: Requester, body: Body) -> HitType:
    mine = HitType.objects.filter(requester=requester).select_related("requester")
    key = body.text("hit_type_id", most=LONGEST_ID, default="")
    group = body.text("hit_group_id", most=LONGEST_ID, default="")
    if key or group:
        return first_or_raise(
            mine.filter(public_id=key) if key else mine.filter(group_id=group),
            HitTypeDoesNotExist(key or group),
        )
    return _hit_type_of_annotations(requester, body.text("annotation_prefix", most=255))


def _hit_type_of_annotations(requester: Requester, prefix: str) -> HitType:
    hits = Hit.objects.of(requester).filter(requester_annotation__startswith=prefix)
    keys = list(hits.order_by().values_list("hit_type", flat=True).distinct()[:2])
    if len(keys) != 1:
        n = "no HITs" if not keys else "HITs of several types"
        raise InvalidParameter(f"There are {n} with this annotation_prefix: say the hit_type_id.")
    return HitType.objects.select_related("requester").get(pk=keys[0])


def posting_of(requester: Requester, body: Body) -> Posting:
    return Posting(
        reward=body.amount("reward"),
        minutes=body.integer("minutes", least=1, most=1440),
        items_per_session=body.integer("items", least=1, most=MOST_ITEMS, default=1),
        places=body.integer("places", least=0, most=100_000, default=0),
        devices=tuple(body.texts("devices", most=3)),
        filters=tuple(body.texts("filters", most=MOST_FILTERS, longest=LONGEST_LINE)),
        labels=tuple(body.texts("labels", most=len(LABELS))),
        screen_out_reward=body.amount_if_any("screen_out_reward"),
        screen_out_places=body.integer("screen_out_places", least=0, most=100_000, default=0),
        annotation_prefix=body.text("annotation_prefix", most=255, default=""),
        excluded=_studies_of(requester, body.texts("excluded", most=MOST_EXCLUDED)),
    )


def _studies_of(requester: Requester, tokens: list[str]) -> tuple[RecruitedStudy, ...]:
    known = {
        study.token: study
        for study in RecruitedStudy.objects.filter(requester=requester, token__in=tokens)
    }
    if missing := [token for token in tokens if token not in known]:
        raise ChannelDoesNotExist(missing[0])
    return tuple(known.values())
