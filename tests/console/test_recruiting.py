"""Recruiting on the console's pages, as people of different roles meet it; what is requested there
is done in the background (tests/hits/test_recruited_batches.py)."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import AuditEntry, User
from accounts.roles import Role
from accounts.teams import create_team, set_role
from annotation.access import give_to_team
from annotation.study_jobs import RECRUIT, request_study_job
from console.launch_view import LaunchView
from console.recruit_forms import even_share
from encryption import encrypt
from hits.models import (
    Assignment,
    Batch,
    Connection,
    DraftDecision,
    Hit,
    Recruiter,
    RecruiterCall,
    Recruitment,
)
from hits.recruited_batches import batches_without_study
from tests.annotation.studies import rating_study
from tests.console.filled import NOON, add_assignment, add_batch, add_recruitment
from tests.console.pages import words_of
from work.models import Job

pytestmark = pytest.mark.django_db
OFFER = {"items": "2", "minutes": "10", "reward": "1.50", "places": ""}


@pytest.fixture
def study(researcher):
    study = rating_study("mine", owner=researcher)
    give_to_team(study=study, team=create_team(name="Lab", owner=researcher), actor=researcher)
    return study


@pytest.fixture
def recruitment(study):
    return add_recruitment(study)


def page(batch):
    return reverse("console:batch", args=["mine", batch.pk])


def press(browser, recruitment, action, **form):
    where = reverse(
        "console:recruit-act", args=["mine", recruitment.batch_id, recruitment.pk, action]
    )
    return browser.post(where, {"number": str(recruitment.n_requests)} | form)


def draft(browser, recruitment, **changed):
    where = reverse("console:recruit-draft", args=["mine", recruitment.batch_id])
    return browser.post(where, OFFER | {"recruiter": str(recruitment.recruiter_id)} | changed)


def requested():
    return [job.arguments for job in Job.objects.of_kind("recruit_participants").order_by("pk")]


def colleague_as(role, study, signed_in):
    user = User.objects.create_user(f"{role}-user")
    set_role(team=study.team, user=user, role=role, actor=None)
    return signed_in(user)


def test_the_page_says_how_it_stands(rosa, recruitment):
    words = words_of(rosa.get(page(recruitment.batch)).content.decode())
    for part in (
        "Open at Prolific.",
        "does 2 items in about 10 minutes for 1.50 GBP: 9.00 GBP an hour",
        "3 of 4 completed",
        "Finished, not decided 3",
        "Did not consent 1",
        "Bonus, 0.50 GBP",
        "Nobody answered. No answer came.",
    ):
        assert part in words
    assert "USD" not in words


def test_participations_say_what_the_recruiter_has_not_got_and_whose_work_is_missing(
    rosa, recruitment
):
    Recruitment.objects.update(
        sessions={"started": 3, "approved": 5}, unsent={"approved": 2}, n_entered=1
    )
    words = words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert (
        "At work 2 Handed in at Prolific, the work not all here 1 "
        "Approved here, not at Prolific yet 2 Approved 3"
    ) in words


@pytest.mark.parametrize(
    ("role", "sees_pay", "acts"),
    [
        (Role.RESEARCHER, True, True),
        (Role.AUDITOR, True, False),
        (Role.ANALYST, False, False),
    ],
)
def test_each_role_sees_and_does_what_it_may(study, recruitment, signed_in, role, sees_pay, acts):
    browser = colleague_as(role, study, signed_in)
    words = words_of(browser.get(page(recruitment.batch)).content.decode())
    assert ("1.50 GBP" in words, "Stop for good" in words) == (sees_pay, acts)
    assert ("A1IDENTIFIABLE" in words, "5f5f5f5f" in words) == (acts, False)
    assert press(browser, recruitment, "stop").status_code == (302 if acts else 403)


def test_only_an_owner_is_told_which_submission_a_worker_is_of(rosa, recruitment):
    words = words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert "A1IDENTIFIABLE · submission 5f5f5f5f" in words


def test_another_study_of_the_batch_hides_nothing_of_the_one_before(rosa, study, recruitment):
    Recruitment.objects.update(state="stopped")
    values = ("batch", "recruiter", "reward", "minutes", "items", "places")
    again = Recruitment.objects.create(
        public_id="another", state="draft", **{name: getattr(recruitment, name) for name in values}
    )
    words = words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert "Earlier studies of this batch" in words
    assert "Closed, 3 of 4 completed (Finished, not decided 3, Returned their place 1)" in words
    assert "Bonus, 0.50 GBP" in words
    Recruitment.objects.filter(pk=again.pk).update(state="discarded")
    words = words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert "Earlier studies" not in words
    assert "Closed at Prolific" in words


def test_a_study_is_drafted_once_by_what_the_form_says(rosa, study, recruitment):
    Recruitment.objects.update(state="stopped")
    answer = draft(
        rosa,
        recruitment,
        devices=["desktop"],
        places="3",
        filters="age = 18..65\n\n  handedness = 1, 2 ",
        labels=["ai_evaluation"],
        screen_out_reward="0.20",
        screen_out_places="5",
    )
    assert answer.status_code == 302
    made = Recruitment.objects.latest("pk")
    assert (made.filters, made.labels) == (
        ["age = 18..65", "handedness = 1, 2"],
        ["ai_evaluation"],
    )
    assert (made.screen_out_reward, made.screen_out_places) == (Decimal("0.20"), 5)
    assert (made.reward, made.items, made.places, made.devices) == (
        Decimal("1.50"),
        2,
        3,
        ["desktop"],
    )
    assert [each["action"] for each in requested()] == ["draft"]
    again = draft(rosa, recruitment)
    assert "drafted or open already" in words_of(again.content.decode())
    assert Recruitment.objects.count() == 2
    assert AuditEntry.objects.filter(action="recruitment.draft", actor_name="rosa").count() == 1


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("reward", "0"),
        ("reward", "1.505"),
        ("reward", "-1"),
        ("reward", "1e3"),
        ("minutes", "701"),
        ("items", "101"),
        ("items", "9"),
        ("places", "0"),
        ("recruiter", "999999"),
        ("devices", "fridge"),
        ("filters", "age"),
        ("labels", "fridge"),
        ("screen_out_reward", "9.00"),
    ],
)
def test_an_offer_that_cannot_be_is_said_at_its_field(rosa, recruitment, field, value):
    Recruitment.objects.update(state="stopped")
    others = {"screen_out_places": "5"} if field == "screen_out_reward" else {}
    answer = draft(rosa, recruitment, **{field: value}, **others)
    assert answer.status_code == 200
    assert field in answer.context["recruiting"].form.errors
    assert requested() == []


@pytest.mark.parametrize("name", ["launch", "answers"])
def test_the_researcher_is_led_to_the_study_that_participants_come_by(rosa, recruitment, name):
    path = reverse(f"console:{name}", args=["mine"])
    hint = f"Nobody comes to batch {recruitment.batch_id}: it is for participants"
    words = words_of(rosa.get(path).content.decode())
    assert hint not in words
    assert "send people there" not in words
    recruitment.calls.all().delete()
    recruitment.delete()
    words = words_of(rosa.get(path).content.decode())
    assert hint in words
    assert "Recruit participants" in words
    assert "Answers come in by themselves" not in words
    home = words_of(rosa.get(reverse("console:studies")).content.decode())
    assert f"Nobody comes to batch {recruitment.batch_id}: no study of it is open" in home


def test_nobody_is_led_to_a_study_of_a_batch_that_is_answered(study, recruitment):
    batch = recruitment.batch
    Recruitment.objects.update(state="stopped")
    assert batches_without_study([batch]) == [batch]
    for worker in ("A1", "A2", "A3"):
        add_assignment(batch.hits.order_by("pk")[0], worker)
    assert batches_without_study([batch]) == []


@pytest.mark.parametrize(
    ("items", "places", "words"),
    [
        (2, 2, "Places 2; 1 item is left for the last participant, for the same reward"),
        (1, 2, "Places 2; 1 judgment stays over"),
    ],
)
def test_a_draft_says_who_does_less_and_what_stays_over(rosa, study, items, places, words):
    recruitment = add_recruitment(study, state="draft", items=items, places=places)
    page_words = words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert words in page_words
    Recruitment.objects.update(items=1, places=3)
    page_words = words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert "Places 3" in page_words
    assert not re.search("stays? over|for the last", page_words)


def test_the_form_proposes_a_number_of_items_of_which_none_stay_over(rosa, study):
    recruitment = add_recruitment(study, state="stopped", places=3)
    view = rosa.get(page(recruitment.batch)).context["recruiting"]
    assert "3 judgments are wanted" in str(view.form.fields["places"].help_text)
    one = add_assignment(recruitment.batch.hits.order_by("pk")[0])
    Assignment.objects.filter(pk=one.pk).update(status="Rejected")  # nobody does it again
    view = rosa.get(page(recruitment.batch)).context["recruiting"]
    assert "2 judgments are wanted" in str(view.form.fields["places"].help_text)
    assert (even_share(10, 24), even_share(10, 23), even_share(1, 5)) == (8, 10, 1)


def test_where_all_judgments_are_in_nobody_else_is_asked_for(rosa, recruitment):
    """Who came on one more place would find nothing to do, and be sent back unpaid."""
    hit = recruitment.batch.hits.order_by("pk")[0]
    for worker in ("A1", "A2", "A3"):
        add_assignment(hit, worker)
    words = words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert "no more participants are needed" in words
    assert "whoever comes finds nothing to do. Stop the study." in words
    assert "Ask what more cost" not in words
    assert "All judgments of the batch are in" in words_of(
        press(rosa, recruitment, "price", places="5").content.decode()
    )
    Recruitment.objects.update(state="draft")
    words = words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert "whoever came would find nothing to do. Discard the draft." in words
    assert "Publish the study" not in words
    answer = press(rosa, recruitment, "publish", confirmed="8.00")
    assert "All judgments of the batch are in" in words_of(answer.content.decode())
    Recruitment.objects.update(state="stopped")
    assert "Draft another study" not in words_of(rosa.get(page(recruitment.batch)).content.decode())
    answer = draft(rosa, recruitment)
    assert "All judgments of the batch are in" in words_of(answer.content.decode())
    assert requested() == []


def test_a_draft_with_more_places_than_judgments_need_is_not_published(rosa, study):
    recruitment = add_recruitment(study, state="draft", items=3, places=4)
    words = words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert "3 judgments are not in yet: work for 3 participants, those at work included." in words
    assert "Discard the draft, and draft it anew." in words
    assert "Publish the study" not in words


def test_a_form_that_is_refused_says_so_first_and_takes_the_focus(rosa, recruitment):
    Recruitment.objects.update(state="stopped")
    text = draft(rosa, recruitment, minutes="701", places="4").content.decode()
    [summary] = re.findall('(?s)role="alert" tabindex="-1" autofocus>.*?</div>', text)
    words = words_of(f"<p {summary}")
    assert "Minutes for all of them : Ensure this value is less than or equal to 700." in words
    assert "Participants : 3 judgments are not in yet: work for 3 participants" in words
    assert 'href="#id_minutes"' in summary
    Recruitment.objects.update(state="active")
    text = press(rosa, recruitment, "price", places="x").content.decode()
    assert 'href="#id_price_places">Participants in all</a>' in text


def test_a_draft_is_published_for_the_amount_that_is_typed(rosa, study, recruitment):
    Recruitment.objects.update(state="draft")
    for amount in ("", "7.99", "8,00", "free"):
        answer = press(rosa, recruitment, "publish", confirmed=amount)
        assert answer.context["recruiting"].amount_form.errors
    assert requested() == []
    assert press(rosa, recruitment, "publish", confirmed="8.00").status_code == 302
    again = press(rosa, recruitment, "publish", confirmed="8.00")
    assert "requested of it since" in words_of(again.content.decode())
    [arguments] = requested()
    assert (arguments["action"], arguments["confirmed"]) == ("publish", "8.00")
    [entry] = AuditEntry.objects.filter(action="recruitment.publish")
    assert entry.details["confirmed"] == "8.00"


@pytest.mark.parametrize(
    ("state", "action", "places"), [("draft", "publish", 3), ("active", "places", 6)]
)
def test_the_amount_that_the_page_shows_is_the_one_to_type(
    rosa, recruitment, state, action, places
):
    press(rosa, recruitment, "price", places="6")
    Job.objects.update(state="done")
    facts = {"state": state, "quoted_places": places, "quoted_cost": "9.3350", "n_requests": 0}
    facts["places"] = places if state == "draft" else 4
    Recruitment.objects.update(is_under_way=False, **facts)
    recruitment.refresh_from_db()
    assert "9.34 GBP" in words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert press(rosa, recruitment, action, confirmed="9.33").context["recruiting"].problem == ""
    assert press(rosa, recruitment, action, confirmed="9.34").status_code == 302
    assert requested()[-1]["confirmed"] == "9.34"


def test_more_places_are_priced_then_confirmed(rosa, recruitment):
    assert press(rosa, recruitment, "price", places="x").status_code == 200
    press(rosa, recruitment, "price", places="6")
    Job.objects.update(state="done")
    changed = {"quoted_places": 6, "quoted_cost": "4.00", "is_under_way": False}
    Recruitment.objects.update(**changed)
    recruitment.refresh_from_db()
    words = words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert "6 participants in all: 4.00 GBP more" in words
    press(rosa, recruitment, "places", confirmed="4.00")
    assert [(each["action"], each.get("places")) for each in requested()] == [
        ("price", 6),
        ("places", 6),
    ]


@pytest.mark.parametrize("action", ["resume", "publish", "discard"])
def test_what_its_state_does_not_allow_is_refused(rosa, recruitment, action):
    answer = press(rosa, recruitment, action, confirmed="8.00")
    assert "not in a state for this" in words_of(answer.content.decode())
    assert requested() == []


def test_there_is_no_other_action(rosa, recruitment):
    assert press(rosa, recruitment, "burn").status_code == 404


@pytest.mark.parametrize("role", [None, Role.MANAGER, Role.RESEARCHER])
def test_files_that_say_who_participants_are_are_the_owners(
    rosa, study, recruitment, signed_in, role
):
    browser = rosa if role is None else colleague_as(role, study, signed_in)
    Connection.objects.update(access_key_id="AKIA", encrypted_secret=encrypt("s3cret"))
    Connection.objects.update(team=study.team)
    where = reverse(
        "console:recruit-file", args=["mine", recruitment.batch_id, recruitment.pk, "join"]
    )
    assert (where in browser.get(page(recruitment.batch)).content.decode()) == (role is None)
    Recruitment.objects.update(sessions={"finished": 0})
    assert where not in browser.get(page(recruitment.batch)).content.decode()
    answer = browser.get(where)
    if role is not None:
        assert answer.status_code == 403
        assert press(browser, recruitment, "demographics").status_code == 403
        return
    assert answer.headers["Location"].startswith(
        "/marketplace-api/v1/recruiting/files/study-token/join.csv?key=AKIA&reader=rosa&"
    )
    assert AuditEntry.objects.get(action="export").details["file"].endswith("Prolific: join.csv")
    assert press(browser, recruitment, "demographics").status_code == 302
    assert [each["action"] for each in requested()] == ["demographics"]


@pytest.mark.parametrize("role", [None, Role.RESEARCHER])
def test_an_owner_erases_a_participant_who_writes(rosa, study, recruitment, signed_in, role):
    browser = rosa if role is None else colleague_as(role, study, signed_in)
    shown = words_of(browser.get(page(recruitment.batch)).content.decode())
    assert ("Erase a participant’s data" in shown) == (role is None)
    answer = press(browser, recruitment, "erase", worker_id=" A1IDENTIFIABLE ")
    assert answer.status_code == (302 if role is None else 403)
    if role is None:
        [told] = requested()
        assert (told["action"], told["worker_id"]) == ("erase", "A1IDENTIFIABLE")
        entry = AuditEntry.objects.get(action="recruitment.erase")
        assert "A1IDENTIFIABLE" not in str(entry.details)


def test_the_desk_says_who_pays_participants_and_how_much(rosa, study, recruitment, researcher):
    hits = recruitment.batch.hits.order_by("pk")
    made = [add_assignment(hits[0], "A1"), add_assignment(hits[1], "A1")]
    made.append(add_assignment(hits[0], "A2"))
    desk = words_of(rosa.get(reverse("console:review", args=["mine"])).content.decode())
    assert "3 wait; the recruiter of a participant pays" in desk
    assert "$0.00" not in desk
    for one in made:
        DraftDecision.objects.create(assignment=one, reviewer=researcher, action="approve")
    Recruitment.objects.create(  # that nobody came by
        batch=recruitment.batch,
        recruiter=recruitment.recruiter,
        reward=9,
        minutes=10,
        items=2,
        state="discarded",
    )
    words = words_of(rosa.get(reverse("console:review-send", args=["mine"])).content.decode())
    assert "2 participants are paid up to 3.00 GBP there" in words
    assert "Participants of a recruiter are decided on as a whole" in words
    assert "$" not in words


def test_an_uncertain_call_is_settled_by_who_looked(rosa, recruitment):
    call = RecruiterCall.objects.get()
    where = reverse("console:recruit-settle", args=["mine", recruitment.batch_id, call.pk])
    assert rosa.post(where, {"was_done": "no"}).status_code == 302
    [arguments] = requested()
    assert (arguments["call"], arguments["was_done"]) == (7, False)


def test_of_another_studys_batch_nothing_is_reached(rosa, study, recruitment, researcher):
    other = rating_study("other", owner=researcher)
    batch = add_batch(other)
    where = reverse("console:recruit-act", args=["other", batch.pk, recruitment.pk, "stop"])
    assert rosa.post(where, {"number": "0"}).status_code == 404
    assert requested() == []


def test_a_team_connects_prolific_with_a_token_that_is_kept_encrypted(rosa, study):
    there = Connection.objects.create(team=study.team, name="There", marketplace="local")
    where = reverse("console:recruiter-connect", args=[study.team.slug])
    form = {"connection": there.pk, "name": "Prolific", "token": "s3cret", "workspace": "5f5f"}
    rosa.post(where, form | {"workspace": "../../etc"})
    assert not Job.objects.of_kind("connect_to_recruiter").exists()
    rosa.post(where, form)
    job = Job.objects.of_kind("connect_to_recruiter").get()
    assert "s3cret" not in str(job.arguments)
    assert "s3cret" not in str(AuditEntry.objects.get(action="recruiter.connect").details)
    text = rosa.get(reverse("console:connections", args=[study.team.slug])).content.decode()
    assert "s3cret" not in text


def test_a_token_that_was_refused_is_said_once_at_its_field_and_the_rest_is_kept(rosa, study):
    there = Connection.objects.create(team=study.team, name="There", marketplace="local")
    where = reverse("console:recruiter-connect", args=[study.team.slug])
    form = {"connection": there.pk, "name": "Lab", "token": "s3cret", "workspace": "5f5f"}
    answer = rosa.post(where, form | {"workspace": "../../etc"})
    text = answer.content.decode()
    assert 'href="#id_recruiter_workspace">Workspace</a>' in text
    assert re.search(
        'value="../../etc"[^>]*aria-describedby="[^"]*id_recruiter_workspace_error', text
    )
    assert "s3cret" not in text
    rosa.post(where, form)
    refusal = "Prolific does not accept the token."
    Job.objects.of_kind("connect_to_recruiter").update(state="failed", message=refusal)
    Recruiter.objects.create(
        connection=there, public_id="R", name="Lab", problem=refusal, fetched_at=NOON
    )
    text = rosa.get(reverse("console:connections", args=[study.team.slug])).content.decode()
    assert text.count(refusal) == 1
    token = re.search('<input type="password" name="token"[^>]*>', text)[0]
    assert 'aria-invalid="true"' in token
    assert 'aria-describedby="connecting-recruiter id_recruiter_token_helptext"' in token
    assert 'id="connecting-recruiter" role="alert"' in text
    assert re.search('name="workspace" value="5f5f"', text)
    assert "s3cret" not in text
    unknown = "Prolific has no workspace 5f5f that this token may use."
    Job.objects.of_kind("connect_to_recruiter").update(message=unknown)
    text = rosa.get(reverse("console:connections", args=[study.team.slug])).content.decode()
    assert "aria-invalid" not in re.search('<input type="password" name="token"[^>]*>', text)[0]
    assert "aria-invalid" in re.search('<input[^>]* name="workspace"[^>]*>', text)[0]


def test_another_teams_marketplace_and_recruiter_are_not_there(rosa, study, colleague):
    other = create_team(name="Other", owner=colleague)
    theirs = Connection.objects.create(team=other, name="Theirs", marketplace="local")
    recruiter = Recruiter.objects.create(
        connection=theirs, public_id="5THEIRS", name="Theirs", is_connected=True, fetched_at=NOON
    )
    form = {"connection": theirs.pk, "name": "P", "token": "t", "workspace": "5f"}
    rosa.post(reverse("console:recruiter-connect", args=[study.team.slug]), form)
    where = reverse("console:recruiter-disconnect", args=[study.team.slug, recruiter.pk])
    assert rosa.post(where).status_code == 404
    assert not Job.objects.of_kind("connect_to_recruiter").exists()


def test_a_launch_for_participants_costs_nothing_here(study, researcher):
    connection = Connection.objects.create(
        team=study.team, name="Here", marketplace="local", fees="mturk"
    )
    start = LaunchView(study, researcher)
    data = {**start.form.data, "is_recruited": "on", "reward_usd": "0.50", "countries": "DE"}
    view = LaunchView(study, researcher, data)
    assert (view.draft.is_recruited, view.draft.reward_usd, view.draft.requirements) == (
        True,
        0,
        [],
    )
    assert (view.cost.total_usd, view.wage) == (0, None)
    messages = [finding.message for finding in view.findings]
    assert any("No recruiter is connected" in message for message in messages)
    assert any("not asked of participants" in message for message in messages)
    Recruiter.objects.create(
        connection=connection, public_id="5R", name="P", is_connected=True, fetched_at=NOON
    )
    view = LaunchView(study, researcher, data)
    assert not any("No recruiter" in finding.message for finding in view.findings)


def test_one_payer_of_a_batch(study):
    batch = add_batch(study)
    with pytest.raises(Exception, match="one_payer_of_a_batch"):
        Batch.objects.filter(pk=batch.pk).update(is_recruited=True)


def test_a_bonus_is_requested_in_the_accounts_currency_for_who_has_answered(rosa, recruitment):
    hit = Hit.objects.of(recruitment.batch).first()
    worker = add_assignment(hit).worker
    facts = {"amount": "0.75", "reason": "Careful reasons.", "confirmed": "0.75"}
    refused = press(rosa, recruitment, "bonus", worker_id="NOBODY", **facts)
    assert "Nobody of this Worker ID" in words_of(refused.content.decode())
    assert requested() == []
    given = facts | {"worker_id": worker.worker_id}
    assert press(rosa, recruitment, "bonus", **given).status_code == 302
    [asked] = requested()
    assert (asked["action"], asked["amount"]) == ("bonus", "0.75")
    assert (asked["worker_id"], asked["reason"]) == (worker.worker_id, "Careful reasons.")
    again = press(rosa, recruitment, "bonus", **given)
    assert "Something was requested of it since" in words_of(again.content.decode())
    assert len(requested()) == 1
    slip = press(rosa, recruitment, "bonus", **given | {"amount": "75"})
    assert "This is not the amount above." in words_of(slip.content.decode())


def test_a_bonus_of_more_than_ten_rewards_is_asked_twice(rosa, recruitment):
    """The reward is 1.50: a slip of a digit is asked about, and whoever means it says so."""
    worker = add_assignment(Hit.objects.of(recruitment.batch).first()).worker
    facts = {"worker_id": worker.worker_id, "reason": "Careful."}
    large = facts | {"amount": "15.01", "confirmed": "15.01"}
    asked = press(rosa, recruitment, "bonus", **large).content.decode()
    words = words_of(asked)
    assert "15.01 GBP is more than 10 times the reward of 1.50 GBP" in words
    assert 'name="is_large"' in asked
    assert requested() == []
    assert 'name="is_large"' not in rosa.get(page(recruitment.batch)).content.decode()
    assert press(rosa, recruitment, "bonus", **large, is_large="on").status_code == 302
    Job.objects.update(state="done")
    Recruitment.objects.update(is_under_way=False)
    recruitment.refresh_from_db()
    ten = facts | {"amount": "15.00", "confirmed": "15.00", "reason": "And for the comment."}
    assert press(rosa, recruitment, "bonus", **ten).status_code == 302
    assert [one["amount"] for one in requested()] == ["15.01", "15.00"]


def test_a_bonus_of_who_came_by_another_account_is_refused_on_the_form(rosa, recruitment):
    """The batch had a study at an account in dollars, by which one of the two came."""
    dollars = Recruiter.objects.create(
        connection=recruitment.batch.connection,
        public_id="6R",
        name="Dollars",
        is_connected=True,
        currency="USD",
        fetched_at=NOON,
    )
    values = ("batch", "recruiter", "reward", "minutes", "items", "places")
    facts = {name: getattr(recruitment, name) for name in values} | {"is_under_way": False}
    Recruitment.objects.update(state="stopped", recruiter=dollars)
    later = Recruitment.objects.create(public_id="s2", state="active", **facts)
    hits = Hit.objects.of(recruitment.batch).order_by("pk")[:2]
    for hit, name, minutes in zip(hits, ("B1", "S1"), (-60, 1), strict=True):
        at = later.created_at + timedelta(minutes=minutes)
        came = Assignment.objects.filter(pk=add_assignment(hit, name).pk)
        came.update(accepted_at=at)
    given = {"amount": "0.75", "reason": "Careful.", "confirmed": "0.75"}
    answer = press(rosa, later, "bonus", worker_id="B1", **given)
    refused = words_of(answer.content.decode())
    assert "came before there was a study at Prolific, by one at Dollars" in refused
    assert requested() == []
    assert press(rosa, later, "bonus", worker_id="S1", **given).status_code == 302


def test_a_participant_gets_one_bonus_for_a_reason(rosa, recruitment):
    worker = add_assignment(Hit.objects.of(recruitment.batch).first()).worker
    facts = {"worker_id": worker.worker_id, "reason": "Careful.", "amount": "0.75"}
    press(rosa, recruitment, "bonus", **facts, confirmed="0.75")
    Job.objects.update(state="done")
    Recruitment.objects.update(is_under_way=False)
    number = Recruitment.objects.get().n_requests
    facts["number"] = number
    page = words_of(press(rosa, recruitment, "bonus", **facts, confirmed="0.75").content.decode())
    assert f"{worker.worker_id} had a bonus of 0.75 for the same reason" in page
    assert "Bonuses requested here" in page
    another = facts | {"reason": "And for the comment."}
    assert press(rosa, recruitment, "bonus", **another, confirmed="0.75").status_code == 302


@pytest.fixture
def participant(recruitment):
    """Two items of one participant of whom a bonus waits to be looked after."""
    hits = recruitment.batch.hits.order_by("pk")[:2]
    return [add_assignment(hit, "A1IDENTIFIABLE") for hit in hits]


def desk(browser, assignment, **more):
    address = reverse("console:review", args=["mine"])
    return words_of(browser.get(address, {"assignment": assignment.pk} | more).content.decode())


def decide(browser, assignment, **form):
    address = reverse("console:review-draft", args=["mine", assignment.pk])
    return browser.post(address, {"text": "", "show": "waiting"} | form)


def test_the_desk_says_what_a_participant_has_beside_one_item(rosa, participant):
    one, other = participant
    words = desk(rosa, one)
    assert "One of 2 items of this participant, all of which are decided alike" in words
    assert f"{other.hit.item.key} Submitted" in words
    assert "No answer came." in words
    assert "Bonus in GBP…" in words
    for never in ("Part pay…", "Bonus…", "pays $"):
        assert never not in words


def test_what_was_typed_for_a_refused_rejection_is_kept(rosa, participant):
    assert "at least 100 characters" in desk(rosa, participant[0], do="reject")
    decide(rosa, participant[0], action="reject", text="Too short a reason.")
    assert "Too short a reason." in desk(rosa, participant[0], do="reject")
    assert "Too short a reason." not in desk(rosa, participant[0], do="reject")


def test_two_items_of_a_participant_are_not_decided_otherwise(rosa, participant):
    one, other = participant
    decide(rosa, one, action="reject", text="x" * 120)
    assert f"{one.hit.item.key} Submitted; Reject: not sent" in desk(rosa, other)
    decide(rosa, other, action="approve")
    assert "all are decided alike" in desk(rosa, other)
    [drafted] = DraftDecision.objects.all()
    assert (drafted.assignment, drafted.action) == (one, "reject")


def test_what_must_be_looked_after_stands_on_the_first_pages(rosa, study, recruitment):
    said = "must be looked after at the recruiter"
    home = words_of(rosa.get(reverse("console:studies")).content.decode())
    assert f"1 participant of batch {recruitment.batch_id} {said}" in home
    overview = words_of(rosa.get(reverse("console:study", args=["mine"])).content.decode())
    assert f"1 participant of batch {recruitment.batch_id} {said}" in overview
    RecruiterCall.objects.update(is_uncertain=False, put_away_at=NOON)
    assert said not in words_of(rosa.get(reverse("console:studies")).content.decode())


def test_a_call_that_was_refused_is_put_away_once_somebody_has_seen_it(rosa, recruitment):
    call = recruitment.calls.get()
    where = reverse("console:recruit-put-away", args=["mine", recruitment.batch_id, call.pk])
    rosa.post(where)  # nobody puts away what nobody answered
    assert "No answer came." in words_of(rosa.get(page(recruitment.batch)).content.decode())
    RecruiterCall.objects.update(is_uncertain=False)
    assert "Seen: list it no more" in words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert rosa.post(where).status_code == 302
    assert "No answer came." not in words_of(rosa.get(page(recruitment.batch)).content.decode())


def test_what_a_study_cost_in_all_is_said_once_it_is_over(rosa, recruitment):
    charges = {"study": "8.00", "reward": "6.00", "bonus": "1.00", "screen_out": "0.27"}
    Recruitment.objects.update(charges=charges)
    said = "7.27 GBP paid so far in all"
    assert said not in words_of(rosa.get(page(recruitment.batch)).content.decode())
    Recruitment.objects.update(state="stopped")
    assert said in words_of(rosa.get(page(recruitment.batch)).content.decode())


def test_a_participant_who_came_twice_is_decided_each_time_by_itself(rosa, participant):
    one, other = participant
    Assignment.objects.filter(pk=other.pk).update(accepted_at=NOON + timedelta(minutes=9))
    decide(rosa, one, action="reject", text="x" * 120)
    decide(rosa, other, action="approve")
    assert DraftDecision.objects.count() == 2
    assert "1 item of this participant" not in desk(rosa, one)


def test_a_refused_decision_can_be_sent_again(rosa, recruitment):
    RecruiterCall.objects.update(is_uncertain=False, kind="approve")
    assert "Send it again" in words_of(rosa.get(page(recruitment.batch)).content.decode())
    where = reverse(
        "console:recruit-settle",
        args=["mine", recruitment.batch_id, recruitment.calls.get().pk],
    )
    assert rosa.post(where, {"was_done": "no"}).status_code == 302
    [asked] = requested()
    assert (asked["action"], asked["was_done"]) == ("settle", False)


@pytest.mark.parametrize(
    ("state", "outcome", "reported", "said"),
    [
        ("returned", "completed", "completed", "They gave their place back at Prolific"),
        ("timed_out", "completed", "", "no code was entered at Prolific in time"),
        ("timed_out", "", "", "Their time ran out at Prolific before all of their work came"),
        ("finished", "completed", "other", "entered at Prolific is that of: none of this study"),
        ("finished", "completed", "no_consent", "is that of: Did not consent"),
    ],
)
def test_the_desk_says_how_a_participant_stands_before_they_are_decided_on(
    rosa, participant, recruitment, state, outcome, reported, said
):
    assert said not in desk(rosa, participant[0])
    recruitment.participations.create(
        worker_id="A1IDENTIFIABLE", state=state, outcome=outcome, reported=reported
    )
    assert said in desk(rosa, participant[0])


def test_a_bonus_is_not_sent_again_while_it_may_still_show(rosa, recruitment):
    RecruiterCall.objects.update(shows_by=timezone.now() + timedelta(minutes=30))
    words = words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert "it can be sent again after that" in words
    assert "It was done there" in words
    assert "It was not: send it again" not in words
    RecruiterCall.objects.update(shows_by=timezone.now() - timedelta(minutes=1))
    words = words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert "It was not: send it again" in words


def test_to_have_a_doubtful_submission_paid_is_asked_twice(rosa, recruitment):
    RecruiterCall.objects.update(kind="doubt")
    text = rosa.get(page(recruitment.batch)).content.decode()
    [asked] = re.findall(r"(?s)<details><summary[^>]*>Leave it as it is….*?</details>", text)
    assert "Prolific pays all of it in time" in words_of(asked)
    assert 'name="was_done" value="yes">Leave it, and have it paid' in asked
    assert text.count('value="yes"') == 1


def test_what_recruiters_paid_stands_beside_what_was_spent(rosa, study, recruitment, signed_in):
    charges = {"study": "8.00", "reward": "6.00", "bonus": "1.00", "screen_out": "0.27"}
    Recruitment.objects.update(charges=charges)
    home = words_of(rosa.get(reverse("console:studies")).content.decode())
    assert "0.00 and 7.27 GBP by its recruiter" in home
    Connection.objects.update(team=study.team)
    team = words_of(
        rosa.get(reverse("console:connections", args=[study.team.slug])).content.decode()
    )
    assert "7.27 GBP paid to participants, fees included, and 2.00 GBP set aside" in team
    Recruitment.objects.update(state="stopped")
    team = words_of(
        rosa.get(reverse("console:connections", args=[study.team.slug])).content.decode()
    )
    assert "and 0.00 GBP set aside" in team
    analyst = colleague_as(Role.ANALYST, study, signed_in)
    assert "GBP" not in words_of(analyst.get(reverse("console:studies")).content.decode())


def test_a_token_is_not_forgotten_unasked_while_a_study_is_open(rosa, study, recruitment):
    Connection.objects.update(team=study.team)
    where = reverse("console:connections", args=[study.team.slug])
    words = words_of(rosa.get(where).content.decode())
    assert "1 study of it is open, and stays open there: newcomers are turned away" in words
    Recruiter.objects.update(is_connected=False)
    words = words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert "Prolific is disconnected: nobody asks it how this stands" in words
    assert "looked at each minute" not in words
    overview = words_of(rosa.get(reverse("console:study", args=["mine"])).content.decode())
    assert (
        f"Prolific is disconnected, and a study of batch {recruitment.batch_id} is open" in overview
    )


def test_free_places_without_work_are_said_before_anybody_is_sent_back_unpaid(
    rosa, study, recruitment
):
    said = "free place has no work: its judgments are given, promised or expired"
    assert said not in words_of(rosa.get(page(recruitment.batch)).content.decode())
    Recruitment.objects.update(needed=0)
    assert f"1 {said}" in words_of(rosa.get(page(recruitment.batch)).content.decode())
    overview = words_of(rosa.get(reverse("console:study", args=["mine"])).content.decode())
    home = words_of(rosa.get(reverse("console:studies")).content.decode())
    for words in (overview, home):
        assert f"1 free place of batch {recruitment.batch_id} has no work" in words
    Recruitment.objects.update(needed=1)
    assert said not in words_of(rosa.get(page(recruitment.batch)).content.decode())


def test_who_may_not_see_money_reads_no_amount_of_what_was_not_done(study, recruitment, signed_in):
    Recruitment.objects.update(problem="Prolific asks 8.00 GBP for it. Type this amount to go on.")
    analyst = colleague_as(Role.ANALYST, study, signed_in)
    words = words_of(analyst.get(page(recruitment.batch)).content.decode())
    assert "What was requested of it last was not done." in words
    assert "8.00 GBP" not in words


def test_a_bonus_is_in_the_currency_of_its_own_study(rosa, study, recruitment):
    told = {"batch": recruitment.batch_id, "recruitment": recruitment.pk, "number": 1}
    told |= {"action": "bonus", "worker_id": "A1", "amount": "0.75", "reason": "Careful"}
    paid = request_study_job(study=study, kind=RECRUIT, arguments=told | {"is_sent": True})
    Job.objects.filter(pk=paid.pk).update(state="done")
    Recruitment.objects.update(state="stopped")
    dollars = Recruiter.objects.create(
        connection=recruitment.batch.connection,
        public_id="6R",
        name="Dollars",
        is_connected=True,
        currency="USD",
        fetched_at=NOON,
    )
    values = ("batch", "reward", "minutes", "items", "places")
    facts = {name: getattr(recruitment, name) for name in values}
    facts |= {"outcomes": {"completed": 1}, "is_under_way": False}
    Recruitment.objects.create(recruiter=dollars, public_id="s2", state="active", **facts)
    words = words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert "0.75 GBP" in words
    assert "0.75 USD" not in words


@pytest.mark.parametrize(
    ("kind", "is_uncertain", "is_paid_by_time"),
    [
        ("doubt", True, True),
        ("doubt", False, False),  # paid already, as one who was screened out
        ("reject", False, True),
        ("approve", False, True),
        ("bonus", True, False),
        ("message", False, False),
    ],
)
def test_what_the_recruiter_pays_by_time_is_said_of_no_other_call(
    rosa, recruitment, kind, is_uncertain, is_paid_by_time
):
    recruitment.calls.update(kind=kind, is_uncertain=is_uncertain)
    home = words_of(rosa.get(reverse("console:studies")).content.decode())
    assert "1 participant of batch" in home
    assert ("What nobody decides on, the recruiter may pay by time." in home) is is_paid_by_time


def test_a_bonus_is_offered_where_somebody_has_done_the_work_whom_the_account_pays(
    rosa, recruitment
):
    """Another account, with a study of the batch that nobody has completed, pays none of them."""
    values = ("batch", "recruiter", "reward", "minutes", "items", "places")
    facts = {name: getattr(recruitment, name) for name in values} | {"is_under_way": False}
    Recruitment.objects.update(state="stopped", outcomes={"completed": 1})
    later = Recruitment.objects.create(public_id="s2", state="active", **facts)
    offered = "<summary>Pay a bonus</summary>"
    assert offered in rosa.get(page(recruitment.batch)).content.decode()
    later.recruiter = Recruiter.objects.create(
        connection=recruitment.batch.connection,
        public_id="6R",
        name="Another",
        is_connected=True,
        currency="GBP",
        fetched_at=NOON,
    )
    later.save()
    assert offered not in rosa.get(page(recruitment.batch)).content.decode()


def test_people_are_counted_who_must_be_looked_after_and_what_it_is_about(rosa, recruitment):
    call = recruitment.calls.get()
    for number in (2, 3):
        recruitment.calls.create(
            number=number, kind="bonus", is_uncertain=False, worker_id=call.worker_id
        )
    home = words_of(rosa.get(reverse("console:studies")).content.decode())
    assert f"1 participant of batch {recruitment.batch_id} must be looked after" in home
    assert "A bonus or a message was refused, or nobody knows whether it arrived." in home
    recruitment.calls.create(number=4, kind="doubt", is_uncertain=True, worker_id="A2OTHER")
    home = words_of(rosa.get(reverse("console:studies")).content.decode())
    assert f"2 participants of batch {recruitment.batch_id} must be looked after" in home
    assert "What nobody decides on, the recruiter may pay by time." in home


def test_a_reward_that_was_changed_at_the_recruiter_is_named(rosa, recruitment):
    Recruitment.objects.update(state="active", reward_there="1.5000")
    assert "was changed at" not in words_of(rosa.get(page(recruitment.batch)).content.decode())
    Recruitment.objects.update(reward_there="2.2500", screen_out_reward_there="0.30")
    words = words_of(rosa.get(page(recruitment.batch)).content.decode())
    assert "it pays 2.25 GBP there, not the 1.50 GBP that was decided on here" in words
    assert "What who may not take part gets was changed at Prolific: it is 0.30 GBP" in words


def test_what_a_bonus_costs_with_fees_is_asked_and_typed(rosa, recruitment):
    worker = add_assignment(Hit.objects.of(recruitment.batch).first()).worker
    facts = {"worker_id": worker.worker_id, "reason": "Careful."}
    assert "Ask what it costs with fees" in rosa.get(page(recruitment.batch)).content.decode()
    asked = press(rosa, recruitment, "price_bonus", **facts, amount="0.75", confirmed="")
    assert asked.status_code == 302
    [told] = requested()
    assert (told["action"], told["amount"]) == ("price_bonus", "0.75")
    Job.objects.update(state="done")
    quoted = {"quoted_bonus": "0.75", "quoted_bonus_cost": "1.0000", "is_under_way": False}
    Recruitment.objects.update(**quoted)
    recruitment.refresh_from_db()
    said = rosa.get(page(recruitment.batch)).content.decode()
    assert "A bonus of 0.75 GBP costs 1.00 GBP, by Prolific, fees included" in words_of(said)
    assert f'value="{worker.worker_id}"' in said
    bonus = facts | {"amount": "0.75"}
    slip = press(rosa, recruitment, "bonus", **bonus, confirmed="0.75")
    assert "With its fees Prolific asks 1.00 GBP" in words_of(slip.content.decode())
    assert len(requested()) == 1
    assert press(rosa, recruitment, "bonus", **bonus, confirmed="1.00").status_code == 302
    assert [one["action"] for one in requested()] == ["price_bonus", "bonus"]
