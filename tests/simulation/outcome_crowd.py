from collections.abc import Mapping
from random import Random
from typing import Any

from django.utils import timezone

from annotation.models import Study
from hits.crowd.replay import form_answer


class KnownTaste:
    def __init__(
        self, study: Study, accepted: Mapping[str, set[str]], *, errs: float, seed: int = 0
    ) -> None:
        self.accepted, self.errs, self.seed = accepted, errs, seed
        self.items = {
            str(item.pk): (item.key, {one.blind_key: one.key for one in item.candidates.all()})
            for item in study.items.prefetch_related("candidates")
        }

    def answer(self, worker: str, page: dict[str, Any]) -> dict[str, Any]:
        target, keys = self.items[page["item"]]
        values: dict[tuple[str | None, str], Any] = {}
        for blind in page["candidates"]:
            chance = Random(f"{self.seed}:{worker}:{target}:{keys[blind]}")
            is_error = chance.random() < self.errs
            values[blind, "would_do"] = int((keys[blind] in self.accepted[target]) != is_error)
        answer = form_answer(page, values, seconds=dict.fromkeys(values, 5.0))
        answer["consent"] = {"text": page["consent"], "at": timezone.now().isoformat()}
        return answer | {"reasons": []}
