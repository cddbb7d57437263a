"""A crowd whose switching rule is known, on the HITs of a switching study."""

from __future__ import annotations

from random import Random
from typing import Any

from django.utils import timezone

from annotation.models import Study
from hits.crowd.replay import AnswerKey, form_answer
from simulation.models import RecordedTurn

KEEP, SWITCH, LEAVE = range(3)


class KnownRule:
    """Workers who switch after a loss with one probability and after a gain with another, take the
    nearest alternative or any, and sometimes leave."""

    def __init__(
        self,
        study: Study,
        *,
        after_loss: float,
        after_gain: float,
        nearest: float = 0.7,
        leaves: float = 0.1,
        seed: int = 0,
    ) -> None:
        turns = RecordedTurn.objects.filter(dialogues__study=study).select_related("item")
        self.turns = {str(one.item_id): one for one in turns}
        self.keys = {
            one.pk: {each.key: each.blind_key for each in one.item.candidates.all()}
            for one in turns
        }
        self.p = {True: after_loss, False: after_gain}
        self.nearest, self.leaves, self.seed = nearest, leaves, seed

    def answer(self, worker: str, page: dict[str, Any]) -> dict[str, Any]:
        turn = self.turns[page["item"]]
        chance = Random(f"{self.seed}:{worker}:{turn.item.key}")
        values: dict[AnswerKey, Any] = {(None, "decision"): KEEP}
        if chance.random() < self.leaves:
            values[None, "decision"] = LEAVE
        elif chance.random() < self.p[turn.delta < 0]:
            keys = self.keys[turn.pk]
            near = keys[turn.nearest]
            others = [key for key in keys.values() if key != near]
            values[None, "decision"] = SWITCH
            values[None, "taken"] = (
                near if chance.random() < self.nearest else chance.choice(others)
            )
        seconds = dict.fromkeys(values, 10.0)
        answer = form_answer(page, values, seconds=seconds)
        answer["consent"] = {"text": page["consent"], "at": timezone.now().isoformat()}
        return answer | {"reasons": []}
