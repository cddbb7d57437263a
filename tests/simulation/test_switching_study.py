import json
from collections import Counter

import pytest

from annotation.models import Study
from annotation.protocols.versions import current_document
from hits.questions import task_page
from simulation import models
from tests.annotation.importing import command_output
from tests.simulation.answered import answer_switching
from tests.simulation.conftest import simulated_log

N_TARGETS = 18


@pytest.fixture
def files(tmp_path):
    return simulated_log(
        tmp_path, N_TARGETS, users=["base"], recommenders=["random", "embedding:0.1"]
    )


def imported(files, **options):
    settings = {"study": "switching", "catalogue": "drawn:300", "qrels": files[1]} | options
    return command_output("import_switching_study", files[0], **settings)


@pytest.mark.django_db
def test_losses_and_gains_are_balanced_blind_and_their_origin_is_stored(files):
    imported(files)
    turns = list(models.RecordedTurn.objects.select_related("item"))
    by_sign = Counter(one.delta < 0 for one in turns)
    # A target whose dialogues had no such turn has none here.
    assert min(by_sign.values()) > N_TARGETS // 2
    rows = {
        (row["recommender"], row["target"], row["turn"]): row
        for row in map(json.loads, files[0].read_text().splitlines())
    }
    for one in turns:
        row = rows[one.recommender, one.target, one.turn - 1]
        assert (row["shown"], row["delta"]) == (one.shown, one.delta)
        assert rows[one.recommender, one.target, one.turn - 2]["shown"] == one.previous
        keys = {each.key for each in one.item.candidates.all()}
        assert one.nearest in keys
        assert not keys & {one.shown, one.target}
        told = f"{one.item.key} {one.item.context} {one.item.condition}"
        assert one.recommender not in told
        assert "loss" not in told
    dialogues = models.DialogueStudy.objects.get()
    assert (dialogues.seed, len(dialogues.log_sha256)) == (0, 64)


@pytest.mark.django_db
def test_a_seed_draws_the_same_turns_again_and_another_draws_others(files):
    for slug, seed in (("one", 4), ("same", 4), ("other", 5)):
        imported(files, study=slug, seed=seed)
    drawn = {
        slug: [
            (one.target, one.turn, one.shown)
            for one in models.RecordedTurn.objects.filter(dialogues__study__slug=slug)
        ]
        for slug in ("one", "same", "other")
    }
    assert drawn["one"] == drawn["same"] != drawn["other"]


@pytest.mark.django_db
def test_workers_are_asked_what_they_would_do_before_they_are_asked_which_other_they_take(files):
    imported(files)
    page = task_page(Study.objects.get().items.all()[0])
    next_step, instead = (page.index(f">{title}") for title in ("Your next step", "The other prod"))
    assert next_step < instead
    assert "Judge every response" not in page


@pytest.mark.slow
@pytest.mark.django_db
def test_a_known_rule_is_recovered_from_stored_answers(files):
    imported(files)
    study = Study.objects.get()
    assert current_document(study).title
    people = [f"person {number}" for number in range(8)]
    answer_switching(study, after_loss=0.75, after_gain=0.1, people=people)
    users = ["base", "prob:0:0.75", "prob:0:0.75,switches_on=gain"]
    record = json.loads(command_output("switching_report", "switching", json=True, user=users))
    assert record["n_decisions"] == 8 * study.items.count()
    after_loss, after_gain = record["p_switch_after_loss"], record["p_switch_after_gain"]
    assert after_loss["ci_low"] < 0.75 < after_loss["ci_high"]
    assert after_gain["ci_low"] < 0.1 < after_gain["ci_high"]
    assert record["leaves"]["value"] == 0
    assert record["nearest_excess"]["ci_low"] > 0.1
    loss = next(one for one in record["coefficients"] if one["name"] == "loss")
    assert loss["ci_low"] > 0
    names = [one["user"] for one in record["users"]]
    assert names[0] == "MetaSimProb tolerance 0, P 0.75"
    assert "switches_on gain" in names[-1]
    assert record["users"][0]["gain"]["ci_low"] > 0
    assert record["users"][0]["p_adjusted"] < 0.05
    assert "1. MetaSimProb" in command_output("switching_report", "switching")
