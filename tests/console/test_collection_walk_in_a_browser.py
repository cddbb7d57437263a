"""From drawn pictures to what may be concluded of a test collection: pools, a pilot, HITs, a second
assessment, qrels, evaluation and the report, from the console alone."""

import re
from random import Random

import pytest
from playwright.sync_api import expect

from annotation.models import Study, Submission
from hits.crowd.replay import crowd_names, replay_group
from hits.crowd.simulated import SimulatedAnswers
from hits.models import Hit
from retrieval.models import CollectionFile, PoolSlot
from tests.console.hands import Keyboard, Pointer
from tests.console.test_whole_loop_in_a_browser import make_a_team
from tests.console.walkers import Walker
from tests.console.work import work_off, work_until_visible
from tests.retrieval.drawn_products import (
    catalogue_zip,
    is_acceptable,
    run_text,
    targets,
    vectors_zip,
)

pytestmark = [
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(900),
]
TOPICS = targets(30)
POOLED = ("shape", "colour", "pattern")
ERROR = 0.05
WALKS = [
    pytest.param({"width": 1280, "height": 900}, Keyboard(), id="desk-by-keyboard"),
    pytest.param({"width": 390, "height": 844}, Pointer(), id="telephone"),
]


class TruthfulAnswers(SimulatedAnswers):
    """Annotators who tick what is acceptable, and err once in twenty candidates."""

    def _share(self, names, blind_key, bias):
        worker, _question, item_key, key = names
        target = next(item.key for (pk, _), (item, _) in self.texts.items() if pk == item_key)
        errs = Random(f"{worker} {target} {key}").random() < ERROR
        return 0.9 if is_acceptable(target, key) != errs else 0.1


@pytest.mark.parametrize(("viewport", "hands"), WALKS)
def test_a_collection_is_walked_from_drawn_pictures_to_what_may_be_concluded(
    browsers, live_server, researcher, viewport, hands
):
    rosa = Walker(browsers(viewport), hands, "rosa")
    make_a_team(rosa)
    make_a_collection(rosa)
    make_a_pool(rosa)
    study = make_a_study(rosa)
    judge_all(rosa, study, live_server.url)
    judge_a_sample_again(rosa, study, live_server.url)
    make_qrels(rosa)
    evaluate(rosa)
    conclude(rosa)
    assert rosa.problems == []


def make_a_collection(rosa):
    rosa.press("link", "Collections")
    rosa.press("link", "New collection")
    rosa.write("Name of the collection", "Drawn products")
    rosa.press("button", "Make the collection")
    rosa.see_heading("Runs and qrels")
    for system in POOLED:
        add_run(rosa, system)
    rosa.look("files")
    assert CollectionFile.objects.runs().usable().count() == len(POOLED)


def add_run(rosa, system):
    file = {"name": f"{system}.run", "mimeType": "text/plain"}
    content = run_text(system, TOPICS).encode()
    rosa.page.get_by_label("Files", exact=True).set_input_files(file | {"buffer": content})
    rosa.submit("Add the files")
    rosa.see(system)


def make_a_pool(rosa):
    rosa.press_page("Pool")
    rosa.look("pools-empty")
    for kind, name, content in (
        ("catalogue", "products.zip", catalogue_zip()),
        ("embeddings", "vectors.zip", vectors_zip()),
    ):
        folded = rosa.page.locator("details:not([open]) > summary").filter(has_text="Add a cat")
        if folded.count():
            rosa.hands.press(folded)
        rosa.page.get_by_label("What it is", exact=True).select_option(kind)
        rosa.upload(name, content)
        rosa.submit("Add the file")
        work_off()
        rosa.page.reload()
    rosa.see("nearest neighbours")
    for source in ("colour", "pattern", "shape", "vectors.zip"):
        rosa.write(f"Quota of {source}", "2")
    rosa.submit("Make the pool")
    work_until_visible(rosa.page.get_by_role("link", name="Pool 1"))
    rosa.look("pools")
    rosa.press("link", "Pool 1")
    rosa.see("30 targets with 8 candidates each: 240 judgments to make")
    rosa.look("pool")
    slots = PoolSlot.objects.select_related("topic")
    assert all(slot.docno != slot.topic.topic for slot in slots)


def make_a_study(rosa):
    rosa.write("Name of the study", "Instead of it")
    allow_what_is_wrong(rosa)
    rosa.submit("Make the study")
    work_until_visible(rosa.page.get_by_text("It is judged in the study"))
    rosa.look("pool-with-study")
    rosa.press("link", "Instead of it")
    rosa.see_heading("Instead of it")
    study = Study.objects.get()
    assert study.items.count() == 30
    return study


def allow_what_is_wrong(rosa):
    for box in rosa.page.locator("input[name=allowed]").all():
        rosa.hands.press(box)


def judge_all(rosa, study, site_url):
    """A pilot of three targets, then the rest."""
    rosa.open_stage("Launch")
    rosa.connect_this_site()
    for label in ("Countries", "Least approval rate, %"):
        unfold_all(rosa)
        field = rosa.page.get_by_label(label, exact=True)
        field.fill("")
    rosa.write("Reward for a HIT, $", "0.50")
    rosa.publish("Publish the pilot", "$1.50", "pilot")
    work_on(study, site_url, seed=1)
    rosa.collect()
    rosa.open_stage("Launch")
    rosa.hands.pick(rosa.page.get_by_role("radio", name="The other 27 items"))
    rosa.publish("Publish 27 items", "$13.50", "rest")
    work_on(study, site_url, seed=1)
    rosa.collect()
    assert Submission.objects.of(study).count() == 30


def unfold_all(rosa):
    for summary in rosa.page.locator("form details:not([open]) > summary").all():
        summary.click()


def work_on(study, site_url, *, seed):
    batch = study.batches.order_by("pk").last()
    result = replay_group(
        hit_type_id=batch.hit_type_id,
        names=crowd_names(3, seed=seed),
        source=TruthfulAnswers(study, seed=seed),
        site_url=site_url,
        total=Hit.objects.of(batch).published().count(),
    )
    assert result.n_submitted == Hit.objects.of(batch).published().count()


def judge_a_sample_again(rosa, study, site_url):
    """A tenth of the targets, by others; then kappa of the two rounds."""
    open_judgments(rosa)
    rosa.see("30 of 30 targets are judged.")
    rosa.look("judgments")
    rosa.press("link", "Second assessment…")
    rosa.publish("Publish 3 items", "$1.50", "second")
    work_on(study, site_url, seed=2)
    rosa.collect()
    rounds = Submission.objects.of(study).filter(round=2)
    first = set(Submission.objects.of(study).filter(round=1).values_list("annotator", flat=True))
    assert rounds.count() == 3
    assert first.isdisjoint(rounds.values_list("annotator", flat=True))
    rosa.open_stage("Agreement")
    work_until_visible(rosa.page.get_by_text("One round against another"))
    open_judgments(rosa)
    rosa.see(re.compile(r"Cohen's kappa of rounds 1 and 2: \d\.\d\d \[.*of 24 pairs of judgments"))
    rosa.look("judgments-twice")


def open_judgments(rosa):
    rosa.press("link", "Collections")
    rosa.press("link", "Drawn products")
    rosa.press_page("Judgments")


def make_qrels(rosa):
    for round_ in ("1", "2"):
        rosa.page.get_by_label("Round", exact=True).select_option(round_)
        rosa.submit("Make qrels")
        work_until_visible(rosa.page.get_by_role("link", name=f"Instead of it, round {round_}"))
    rosa.look("judgments-qrels")
    files = CollectionFile.objects.qrels().usable()
    assert sorted(files.values_list("n_topics", flat=True)) == [3, 30]


def evaluate(rosa):
    """The pooled runs, and one that gave the pool nothing."""
    rosa.press_page("Runs and qrels")
    add_run(rosa, "late")
    rosa.press_page("Evaluation")
    rosa.submit("Evaluate")
    work_until_visible(rosa.page.get_by_text("Mean nDCG@10 of each run"))
    rosa.look("evaluation")
    for system in (*POOLED, "late"):
        expect(rosa.page.get_by_role("cell", name=system, exact=True).first).to_be_visible()


def conclude(rosa):
    """What holds under the other round, what an outside system may expect, and the report."""
    for page in ("How far to trust it", "Reuse for other systems"):
        rosa.press_page(page)
        if page.startswith("Reuse"):
            # Each list begins with the target, which is never its own candidate and so not judged.
            rosa.write("Depth of the pool", "3")
            outside = rosa.page.get_by_role("group", name="Runs that were not pooled")
            rosa.hands.press(outside.get_by_role("checkbox", name="late"))
        rosa.submit("Compute")
        work_until_visible(rosa.page.locator(".said-first"))
        rosa.look(page)
    rosa.press_page("Report")
    rosa.submit("Write the report")
    work_until_visible(rosa.page.get_by_role("heading", name="What may be concluded"))
    rosa.look("report")
    report = rosa.download("Download (HTML)").decode()
    for words in (
        "240 judgments to make",
        "Cohen&#x27;s kappa of rounds 1 and 2",
        "no other source lists",
        "late: nDCG@10",
        "nothing was drawn at random",
    ):
        assert words in report, words
