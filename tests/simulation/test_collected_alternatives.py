"""Alternatives of drawn products, from dialogues' lists through pool, HITs and crowd to simulated
users: the chain that ``benchmarks/collected_alternatives.py`` goes with trained recommenders."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from annotation.models import Judgment
from benchmarks.collected_alternatives import dialogues_of, evaluate, judged
from benchmarks.oracle_crowd import collect_alternatives
from marketplace.people.enrolment import issue_access_key
from simulation.comparisons import causes
from simulation.critics import AttributeCritic
from simulation.drawn_products import drawn_catalogue
from simulation.recommenders import EmbeddingRecommender, RandomRecommender

N_TARGETS = 8


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_what_the_crowd_accepted_is_what_simulated_users_accept(
    tmp_path: Path, live_server: Any, settings: Any
) -> None:
    keys = issue_access_key(name="Lab", deposit_usd=Decimal(50))
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_ACCESS_KEY_ID = keys.access_key_id
    settings.MARKETPLACE_SECRET_ACCESS_KEY = keys.secret_access_key
    catalogue = drawn_catalogue(400)
    critic = AttributeCritic(catalogue)
    items = np.random.default_rng(0).choice(400, N_TARGETS, replace=False).tolist()
    recommenders = [EmbeddingRecommender(catalogue, critic), RandomRecommender(catalogue)]
    logs = dialogues_of(catalogue, items, recommenders, critic)
    collected = collect_alternatives(
        catalogue, items, logs, tmp_path, site_url=live_server.url, neighbours=6, retrieved=1,
        errs=0.02,
    )  # fmt: skip
    assert (collected.n_targets, collected.n_answers) == (N_TARGETS, 3 * N_TARGETS)
    assert collected.n_judgments == N_TARGETS * 8
    assert Judgment.objects.count() == 3 * collected.n_judgments
    # Three who err one time in fifty are rarely outvoted together.
    assert collected.n_as_the_oracle >= collected.n_judgments - 2
    targets = judged(catalogue, collected.qrels)
    assert set(targets.target.tolist()) == set(items)
    experiment = evaluate(catalogue, targets, recommenders[:1], critic)
    for one in causes(experiment):
        assert one.total.delta == pytest.approx(one.of_user.delta + one.of_qrels.delta)
    switches = experiment.logs["random"].n_switches()
    assert switches[0] == 0 < switches[1]
