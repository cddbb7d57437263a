import json
from collections import defaultdict
from decimal import Decimal

import pytest

from annotation.models import Study
from hits import models, requirements
from hits.crowd.replay import crowd_names, replay_group
from marketplace.people.enrolment import issue_access_key
from simulation.exceptions import DialoguesUnfit
from simulation.models import DialogueStudy, FinalItem, SimulatedOutcome
from tests.annotation.importing import command_output
from tests.codes import refused, refused_naming
from tests.simulation.conftest import simulated_log
from tests.simulation.outcome_crowd import KnownTaste

N_TARGETS, N_WORKERS = 24, 4
RECOMMENDERS = ["random", "embedding:0.1", "embedding:0.5", "embedding:0.9"]
ACCEPTING = "SimBase accepts target and alternatives"
LEAVING = "SimBase leaves 0.8"


@pytest.fixture
def files(tmp_path):
    users = ["base,leave_hazard=0.8", "base,accepts=target and alternatives"]
    return simulated_log(tmp_path, N_TARGETS, users=users, recommenders=RECOMMENDERS, turns=3)


def imported(log, **options):
    settings = {"study": "outcomes", "catalogue": "drawn:300"} | options
    return command_output("import_outcome_study", log, **settings)


@pytest.mark.django_db
def test_final_items_are_blind_and_their_origin_is_stored(files):
    imported(files[0], final_user=ACCEPTING)
    rows = [json.loads(line) for line in files[0].read_text().splitlines()]
    own = [row for row in rows if row["user"] == ACCEPTING]
    last = {(row["recommender"], row["target"]): row["shown"] for row in own}
    finals = FinalItem.objects.select_related("item")
    assert {(one.recommender, one.item.key): one.shown for one in finals if one.recommender} == last
    for item in Study.objects.get().items.prefetch_related("candidates", "final_items"):
        shown = {one.shown for one in item.final_items.all()}
        keys = [one.key for one in item.candidates.all()]
        assert sorted(keys) == sorted(shown - {item.key})
        assert not any(one.system for one in item.candidates.all())
        assert item.condition == ""
        seen = json.dumps([item.context, *(one.text for one in item.candidates.all())])
        assert not any(name in seen for name in RECOMMENDERS)
        [random] = [one for one in item.final_items.all() if not one.recommender]
        assert random.shown not in {last[name, item.key] for name in RECOMMENDERS}
    found = {(row["user"], row["recommender"], row["target"]) for row in rows if row["found"]}
    outcomes = SimulatedOutcome.objects.select_related("item")
    assert len(outcomes) == 2 * len(RECOMMENDERS) * N_TARGETS
    for one in outcomes:
        assert one.value == ((one.user, one.recommender, one.item.key) in found)
    dialogues = DialogueStudy.objects.get()
    assert (dialogues.kind, dialogues.final_user) == ("outcomes", ACCEPTING)


@pytest.mark.django_db
def test_a_seed_draws_the_same_targets_and_order_again(files):
    for slug, seed in (("one", 4), ("same", 4), ("other", 5)):
        imported(files[0], study=slug, seed=seed, targets=20)
    shown = {
        slug: [
            (item.key, [one.key for one in item.candidates.all()])
            for item in Study.objects.get(slug=slug).items.prefetch_related("candidates")
        ]
        for slug in ("one", "same", "other")
    }
    assert len(shown["one"]) == 20
    assert shown["one"] == shown["same"] != shown["other"]


@pytest.mark.django_db
def test_a_log_that_cannot_be_used_is_refused_with_the_reason(files, tmp_path):
    lines = files[0].read_text().splitlines(keepends=True)
    rows = [json.loads(line) for line in lines]
    target = rows[-1]["target"]
    absent = {"recommender": "embedding:0.9", "user": LEAVING, "target": target}

    def kept(is_kept):
        return [line for line, row in zip(lines, rows, strict=True) if is_kept(row)]

    cases = {
        (LEAVING, "embedding:0.9", target): kept(lambda row: row | absent != row),
        ("spoilt.jsonl",): kept(lambda row: row["recommender"] == "random"),
        (" 1 ", " 20"): kept(lambda row: row["target"] == target),
        ("line 1", "found"): [json.dumps(rows[0] | {"found": "yes"}) + "\n", *lines[1:]],
        ("line 2",): [lines[0], "[1]\n"],
    }
    for named, spoilt in cases.items():
        path = tmp_path / "spoilt.jsonl"
        path.write_text("".join(spoilt))
        with refused_naming(DialoguesUnfit, *named):
            imported(path)
    with refused_naming(DialoguesUnfit, " 24 ", " 5,000"):
        imported(files[0], targets=5000)
    with refused_naming(DialoguesUnfit, "'nobody'"):
        imported(files[0], final_user="nobody")
    with refused(DialoguesUnfit, "item_unknown"):
        imported(files[0], catalogue="drawn:20")
    with refused(DialoguesUnfit, "other_items"):
        imported(files[0], catalogue_seed=7)
    assert not Study.objects.exists()
    imported(files[0])
    with refused(DialoguesUnfit, "study_exists"):
        imported(files[0])
    with refused(DialoguesUnfit, "no_answers"):
        command_output("outcome_report", "outcomes")
    with refused_naming(DialoguesUnfit, "import_switching_study"):
        command_output("switching_report", "outcomes")


@pytest.mark.slow
def test_the_user_who_is_true_is_found_through_the_loop(files, live_server, settings):
    keys = issue_access_key(name="Lab", deposit_usd=Decimal(30))
    settings.MARKETPLACE_ENDPOINT_URL = f"{live_server.url}/requester"
    settings.MARKETPLACE_ACCESS_KEY_ID = keys.access_key_id
    settings.MARKETPLACE_SECRET_ACCESS_KEY = keys.secret_access_key
    log, qrels = files
    imported(log, final_user=ACCEPTING)
    study = Study.objects.get()
    command_output("publish_study", "outcomes", reward=Decimal("0.02"), assignments=N_WORKERS)
    batch = models.Batch.objects.get()
    accepted: dict[str, set[str]] = defaultdict(set)
    for target, _, key, _ in (line.split() for line in qrels.read_text().splitlines()):
        accepted[target].add(key)
    replay_group(
        hit_type_id=batch.hit_type_id,
        names=crowd_names(N_WORKERS, seed=0),
        source=KnownTaste(study, accepted, errs=0.03),
        site_url=live_server.url,
        countries=requirements.countries_of(batch),
        total=N_WORKERS * N_TARGETS,
    )
    command_output("collect_study", "outcomes")
    record = json.loads(command_output("outcome_report", "outcomes", json=True, margin=0.1))
    assert (record["n_answers"], record["n_annotators"]) == (N_WORKERS * N_TARGETS, N_WORKERS)
    assert record["users"] == [LEAVING, ACCEPTING]
    shares = {one["recommender"]: one for one in record["recommenders"]}
    assert shares["random"]["value"] < 0.2 < shares["embedding:0.5"]["value"]
    assert record["item_at_random"]["value"] < 0.15
    of_accepting = [one for one in record["biases"] if one["user"] == ACCEPTING]
    assert all(abs(one["bias"]) < 0.1 for one in of_accepting)
    # Where nobody erred there is no spread, and no test.
    assert all(one["equivalent"] for one in of_accepting if one["p_equivalence"] is not None)
    of_leaving = {one["recommender"]: one for one in record["biases"] if one["user"] == LEAVING}
    assert of_leaving["embedding:0.5"]["ci_high"] < 0
    assert not of_leaving["embedding:0.5"]["equivalent"]
    leaving, true = record["orders"]
    assert leaving["p"] is None
    assert true["values"]["spa"] > leaving["values"]["spa"]
    assert true["values"]["spa"] > 0.9
    assert true["opposite"] == 0 < true["alike"]
    assert record["ceiling"]["spa"] > 0.9
    assert record["counterfactual"]["chosen"] == ACCEPTING
    assert record["counterfactual"]["chosen_on"] == RECOMMENDERS[:2]
    text = command_output("outcome_report", "outcomes", user=[ACCEPTING])
    assert f"{ACCEPTING}: tau_b" in text
    with refused_naming(DialoguesUnfit, "'nobody'"):
        command_output("outcome_report", "outcomes", chosen_on=["nobody"])
