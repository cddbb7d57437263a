"""A switching study's judgments as decisions, and what they say of simulated users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from django.db.models import Count

from annotation.frames import judgment_frame
from annotation.models import Study
from simulation.exceptions import DialoguesUnfit
from simulation.models import DialogueStudy
from simulation.switching import CHOICES, compare_users, switching_study
from simulation.users import MetaUser

DECISION, TAKEN = "decision", "taken"


def decisions_of(study: Study) -> pd.DataFrame:
    """A row for each answer that was not rejected: who decided what, at which recorded turn."""
    turns = _turns(study)
    frame = judgment_frame(study).astype({"item": str, "annotator": str, "candidate": str})
    chosen = frame[(frame["question"] == TAKEN) & (frame["value"] == 1)]
    key = ["item", "annotator", "round"]
    taken = chosen[[*key, "candidate"]].rename(columns={"candidate": "taken"})
    decided = frame[frame["question"] == DECISION][[*key, "value"]]
    rows = decided.merge(taken, on=key, how="left").merge(turns, on="item")
    rows["choice"] = [CHOICES[int(value)] for value in rows["value"]]
    rows["nearest"] = rows["taken"] == rows["nearest"]
    return rows.rename(columns={"annotator": "worker"}).drop(columns="value")


def _turns(study: Study) -> pd.DataFrame:
    """Where each item comes from, which its workers did not see."""
    dialogues = _dialogues(study)
    rows = dialogues.turns.annotate(n_alternatives=Count("item__candidates")).values(
        *("item__key", "target", "turn", "delta", "recommender", "nearest", "n_alternatives")
    )
    return pd.DataFrame(list(rows)).rename(columns={"item__key": "item"})


def _dialogues(study: Study) -> DialogueStudy:
    dialogues = DialogueStudy.objects.filter(study=study).first()
    if dialogues is None:
        raise DialoguesUnfit(
            f"Study '{study.slug}' is not of recorded dialogues. Make one with "
            "import_switching_study."
        )
    return dialogues


def switching_record(
    study: Study, users: Sequence[MetaUser], *, confidence: float = 0.95, seed: int = 0
) -> dict[str, Any]:
    """The model, its probabilities, and the users from the truest on; with the study's origin."""
    dialogues, decisions = _dialogues(study), decisions_of(study)
    if decisions.empty:
        raise DialoguesUnfit(
            f"Study '{study.slug}' has no answers. Publish it and collect what workers answer."
        )
    result = switching_study(decisions, confidence=confidence, seed=seed)
    fits = compare_users(decisions, users, confidence=confidence, seed=seed) if users else []
    return {
        "study": study.slug,
        "origin": {
            name: getattr(dialogues, name)
            for name in ("log_name", "log_sha256", "catalogue", "seed", "per_target")
        }
        | {"n_targets_left_out": dialogues.n_targets_left_out},
        "n_decisions": len(decisions),
        "choices": {name: int((decisions["choice"] == name).sum()) for name in CHOICES},
        "confidence": confidence,
        **result.record(),
        "users": [fit.record() for fit in fits],
    }
