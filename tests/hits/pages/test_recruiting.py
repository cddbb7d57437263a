"""Recruiting on the console's pages, by role; jobs that pages request run in the background
(tests/hits/test_recruited_batches.py)."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils import timezone

from accounts import roles, teams
from accounts.models import AuditEntry, User
from annotation.study_facts import RECRUIT, request_study_job
from encryption import encrypt
from hits import models, recruited_batches
from hits.pages import participants, pricing
from hits.pages.offers import even_share
from tests.annotation.studies import rating_study
from tests.codes import codes_on, field_codes
from tests.console.filled import NOON, add_assignment, add_batch, add_recruitment
from tests.hits.samples import lab_study
from work.models import Job

pytestmark = pytest.mark.django_db


@pytest.fixture
def study(researcher):
    return lab_study(researcher, "mine")


@pytest.fixture
def recruitment(study):
    return add_recruitment(study)


def page(batch):
    return reverse("console:batch", args=["mine", batch.pk])


def show(browser, recruitment):
    return browser.get(page(recruitment.batch)).context["recruiting"]


def html(browser, recruitment):
    return browser.get(page(recruitment.batch)).content.decode()


def notices(browser, recruitment):
    return codes_on(html(browser, recruitment))


def counts(states):
    return {label.code: n for label, n in states}


def url(recruitment, name, *more):
    return reverse(f"console:recruit-{name}", args=["mine", recruitment.batch_id, *more])


def act_url(recruitment, action):
    return url(recruitment, "act", recruitment.pk, action)


def press(browser, recruitment, action, **form):
    where = act_url(recruitment, action)
    return browser.post(where, {"number": str(recruitment.n_requests)} | form)


def draft(browser, recruitment, **changed):
    form = {"items": "2", "minutes": "10", "reward": "1.50", "places": ""}
    form |= {"recruiter": str(recruitment.recruiter_id)} | changed
    return browser.post(url(recruitment, "draft"), form)


def problem_code(answer):
    return answer.context["recruiting"].problem.code


def errors_of(answer):
    return field_codes(answer.context["recruiting"].refused_form)


def requested():
    return [job.arguments for job in Job.objects.of_kind("recruit_participants").order_by("pk")]


def matters(browser, name="studies", *args):
    """The codes of what Home or a study's overview says must be decided, and the notes beside."""
    rows = browser.get(reverse(f"console:{name}", args=args)).context["decisions"]
    texts = [getattr(row, part, "") for row in rows for part in ("message", "note")]
    return [text.code for text in texts if hasattr(text, "code")]


def finish_job(recruitment):
    Job.objects.update(state="done")
    models.Recruitment.objects.update(is_under_way=False)
    recruitment.refresh_from_db()


def colleague_as(role, study, signed_in):
    user = User.objects.create_user(f"{role}-user")
    teams.set_role(team=study.team, user=user, role=role, actor=None)
    return signed_in(user)


def add_recruiter(connection, **facts):
    values = {"public_id": "6R", "name": "P", "is_connected": True, "fetched_at": NOON}
    return models.Recruiter.objects.create(connection=connection, **values | facts)


def later_study(recruitment, **changed):
    values = ("batch", "recruiter", "reward", "minutes", "items", "places")
    facts = {name: getattr(recruitment, name) for name in values}
    facts |= {"public_id": "s2", "state": "active", "is_under_way": False}
    return models.Recruitment.objects.create(**facts | changed)


def test_the_page_shows_the_offer_the_counts_and_the_calls(rosa, recruitment):
    view, text = show(rosa, recruitment), html(rosa, recruitment)
    assert (view.study.state, view.study.items, view.study.minutes) == ("active", 2, 10)
    assert view.hourly == Decimal("9.00")
    assert counts(view.states) == {"finished": 3, "returned": 1}
    assert counts(view.outcomes) == {"completed": 3, "no_consent": 1}
    for part in ("1.50 GBP", "9.00 GBP", "0.50 GBP", "No answer came."):
        assert part in text
    assert "USD" not in text
    models.Recruitment.objects.update(
        sessions={"started": 3, "approved": 5}, unsent={"approved": 2}, n_entered=1
    )
    states = {"started": 2, "entered": 1, "approved_unsent": 2, "approved": 3}
    assert counts(show(rosa, recruitment).states) == states


@pytest.mark.parametrize(
    ("role", "sees_pay", "acts"),
    [
        (None, True, True),
        (roles.Role.RESEARCHER, True, True),
        (roles.Role.AUDITOR, True, False),
        (roles.Role.ANALYST, False, False),
    ],
)
def test_roles_see_and_do_what_they_may(rosa, study, recruitment, signed_in, role, sees_pay, acts):
    browser = colleague_as(role, study, signed_in) if role else rosa
    models.Recruitment.objects.update(problem="Prolific asks 8.00 GBP for it.")
    text = html(browser, recruitment)
    assert ("1.50 GBP" in text, "asks 8.00 GBP" in text) == (sees_pay, sees_pay)
    assert (act_url(recruitment, "stop") in text) == acts
    # Only an owner reads which submission a worker is of.
    assert ("A1IDENTIFIABLE" in text, "5f5f5f5f" in text) == (acts, role is None)
    assert "request_failed" in codes_on(text)
    assert press(browser, recruitment, "stop").status_code == (302 if acts else 403)


def test_another_study_of_the_batch_hides_nothing_of_the_one_before(rosa, study, recruitment):
    models.Recruitment.objects.update(state="stopped")
    again = later_study(recruitment, state="draft")
    view = show(rosa, recruitment)
    [(earlier, states)] = view.earlier
    assert (earlier, view.study) == (recruitment, again)
    assert counts(states) == {"finished": 3, "returned": 1}
    assert "0.50 GBP" in html(rosa, recruitment)
    models.Recruitment.objects.filter(pk=again.pk).update(state="discarded")
    view = show(rosa, recruitment)
    assert (view.earlier, view.study) == ([], recruitment)


def test_a_study_is_drafted_once_as_the_form_says(rosa, study, recruitment):
    models.Recruitment.objects.update(state="stopped")
    chosen = {"devices": ["desktop"], "labels": ["ai_evaluation"]}
    typed = {"filters": "age = 18..65\n\n  handedness = 1, 2 ", "places": "3"}
    typed |= {"screen_out_reward": "0.20", "screen_out_places": "5"}
    assert draft(rosa, recruitment, **chosen, **typed).status_code == 302
    made = models.Recruitment.objects.latest("pk")
    expected = chosen | {"filters": ["age = 18..65", "handedness = 1, 2"], "places": 3, "items": 2}
    expected |= {"screen_out_reward": Decimal("0.20"), "screen_out_places": 5}
    expected["reward"] = Decimal("1.50")
    assert {name: getattr(made, name) for name in expected} == expected
    assert [each["action"] for each in requested()] == ["draft"]
    assert problem_code(draft(rosa, recruitment)) == "open_already"
    assert models.Recruitment.objects.count() == 2
    assert AuditEntry.objects.filter(action="recruitment.draft", actor_name="rosa").count() == 1


def test_an_impossible_offer_is_refused_at_its_field(rosa, recruitment):
    models.Recruitment.objects.update(state="stopped")
    for field, value in (
        *(("reward", value) for value in ("0", "1.505", "-1", "1e3")),
        *(("minutes", "701"), ("items", "101"), ("items", "9"), ("places", "0")),
        *(("recruiter", "999999"), ("devices", "fridge"), ("filters", "age")),
        *(("labels", "fridge"), ("screen_out_reward", "9.00")),
    ):
        others = {"screen_out_places": "5"} if field == "screen_out_reward" else {}
        answer = draft(rosa, recruitment, **{field: value}, **others)
        assert answer.status_code == 200
        assert field in answer.context["recruiting"].form.errors, value
    assert requested() == []


@pytest.mark.parametrize("name", ["launch", "answers"])
def test_the_researcher_is_led_to_draft_a_study(rosa, recruitment, name):
    path, here = reverse(f"console:{name}", args=["mine"]), page(recruitment.batch)
    assert "batch_without_study" not in codes_on(rosa.get(path).content.decode())
    recruitment.calls.all().delete()
    recruitment.delete()
    text = rosa.get(path).content.decode()
    assert "batch_without_study" in codes_on(text)
    assert f"{here}#participants" in text
    assert matters(rosa) == ["batch_without_study"]


def test_a_batch_has_one_payer_and_nobody_is_led_to_an_answered_one(study, recruitment):
    with pytest.raises(IntegrityError) as raised, transaction.atomic():
        models.Batch.objects.filter(pk=add_batch(study).pk).update(is_recruited=True)
    assert "one_payer_of_a_batch" in str(raised.value)
    batch = recruitment.batch
    models.Recruitment.objects.update(state="stopped")
    assert recruited_batches.batches_without_study([batch]) == [batch]
    for worker in ("A1", "A2", "A3"):
        add_assignment(batch.hits.order_by("pk")[0], worker)
    assert recruited_batches.batches_without_study([batch]) == []


@pytest.mark.parametrize(("items", "n_of_last", "n_left_over"), [(2, 1, 0), (1, 0, 1)])
def test_a_draft_counts_the_last_share_and_what_is_over(rosa, study, items, n_of_last, n_left_over):
    recruitment = add_recruitment(study, state="draft", items=items, places=2)
    view = show(rosa, recruitment)
    assert (view.n_of_last, view.n_left_over) == (n_of_last, n_left_over)
    models.Recruitment.objects.update(items=1, places=3)
    view = show(rosa, recruitment)
    assert (view.n_of_last, view.n_left_over) == (0, 0)
    # A draft with more places than judgments need is not published.
    models.Recruitment.objects.update(items=3, places=4)
    view, text = show(rosa, recruitment), html(rosa, recruitment)
    assert (view.n_wanted, view.n_needed) == (3, 3)
    assert "too_many_places" in codes_on(text)
    assert act_url(recruitment, "discard") in text
    assert act_url(recruitment, "publish") not in text


def test_the_form_proposes_a_number_of_items_of_which_none_stay_over(rosa, study):
    recruitment = add_recruitment(study, state="stopped", places=3)
    assert show(rosa, recruitment).n_wanted == 3
    one = add_assignment(recruitment.batch.hits.order_by("pk")[0])
    models.Assignment.objects.filter(pk=one.pk).update(status="Rejected")  # nobody does it again
    view = show(rosa, recruitment)
    assert view.n_wanted == 2
    assert str(view.form.fields["places"].help_text).lstrip("⟦").startswith("2 ")
    assert (even_share(10, 24), even_share(10, 23), even_share(1, 5)) == (8, 10, 1)


def test_nobody_is_recruited_once_all_judgments_are_in(rosa, recruitment):
    """A participant on one more place would find nothing to do, and be sent back unpaid."""
    hit = recruitment.batch.hits.order_by("pk")[0]
    for worker in ("A1", "A2", "A3"):
        add_assignment(hit, worker)
    text = html(rosa, recruitment)
    assert {"judgments_all_in", "study_in_vain"} <= set(codes_on(text))
    assert act_url(recruitment, "price") not in text
    assert problem_code(press(rosa, recruitment, "price", places="5")) == "nothing_wanted"
    models.Recruitment.objects.update(state="draft")
    text = html(rosa, recruitment)
    assert "draft_in_vain" in codes_on(text)
    assert act_url(recruitment, "publish") not in text
    assert problem_code(press(rosa, recruitment, "publish", confirmed="8.00")) == "nothing_wanted"
    models.Recruitment.objects.update(state="stopped")
    assert f'action="{url(recruitment, "draft")}"' not in html(rosa, recruitment)
    assert problem_code(draft(rosa, recruitment)) == "nothing_wanted"
    assert requested() == []


def test_a_refused_form_lists_its_errors_first_and_takes_the_focus(rosa, recruitment):
    models.Recruitment.objects.update(state="stopped")
    answer = draft(rosa, recruitment, minutes="701", places="4")
    assert errors_of(answer) == {"minutes": ["max_value"], "places": ["too_many"]}
    text = answer.content.decode()
    [summary] = re.findall('(?s)role="alert" tabindex="-1" autofocus>.*?</div>', text)
    assert re.findall('href="#([^"]*)"', summary) == ["id_minutes", "id_places"]
    models.Recruitment.objects.update(state="active")
    text = press(rosa, recruitment, "price", places="x").content.decode()
    assert 'href="#id_price_places">' in text


def test_a_draft_is_published_once_for_the_amount_that_is_typed(rosa, study, recruitment):
    models.Recruitment.objects.update(state="draft")
    for amount in ("", "7.99", "8,00", "free"):
        answer = press(rosa, recruitment, "publish", confirmed=amount)
        assert answer.context["recruiting"].amount_form.errors
    assert requested() == []
    assert press(rosa, recruitment, "publish", confirmed="8.00").status_code == 302
    assert problem_code(press(rosa, recruitment, "publish", confirmed="8.00")) == "changed_since"
    [arguments] = requested()
    assert (arguments["action"], arguments["confirmed"]) == ("publish", "8.00")
    [entry] = AuditEntry.objects.filter(action="recruitment.publish")
    assert entry.details["confirmed"] == "8.00"


@pytest.mark.parametrize(
    ("state", "action", "places"), [("draft", "publish", 3), ("active", "places", 6)]
)
def test_the_amount_that_the_page_shows_is_to_be_typed(rosa, recruitment, state, action, places):
    assert press(rosa, recruitment, "price", places="x").status_code == 200
    press(rosa, recruitment, "price", places="6")
    finish_job(recruitment)
    facts = {"state": state, "quoted_places": places, "quoted_cost": "9.3350", "n_requests": 0}
    models.Recruitment.objects.update(places=places if state == "draft" else 4, **facts)
    recruitment.refresh_from_db()
    assert "9.34 GBP" in html(rosa, recruitment)
    assert press(rosa, recruitment, action, confirmed="9.33").context["recruiting"].problem == ""
    assert press(rosa, recruitment, action, confirmed="9.34").status_code == 302
    price, last = requested()
    assert (price["action"], price["places"]) == ("price", 6)
    assert (last["action"], last["confirmed"]) == (action, "9.34")
    assert last.get("places") == (6 if action == "places" else None)


def test_an_action_that_the_state_does_not_allow_is_refused(rosa, recruitment):
    for action in ("resume", "publish", "discard"):
        assert problem_code(press(rosa, recruitment, action, confirmed="8.00")) == "wrong_state"
    assert press(rosa, recruitment, "burn").status_code == 404
    assert requested() == []


@pytest.mark.parametrize("role", [None, roles.Role.MANAGER, roles.Role.RESEARCHER])
def test_only_owners_get_participants_files_and_erase(rosa, study, recruitment, signed_in, role):
    browser = rosa if role is None else colleague_as(role, study, signed_in)
    models.Connection.objects.update(access_key_id="AKIA", encrypted_secret=encrypt("s3cret"))
    models.Connection.objects.update(team=study.team)
    where = url(recruitment, "file", recruitment.pk, "join")
    text = html(browser, recruitment)
    assert {where in text, act_url(recruitment, "erase") in text} == {role is None}
    models.Recruitment.objects.update(sessions={"finished": 0})
    assert where not in html(browser, recruitment)
    answer = browser.get(where)
    if role is not None:
        assert answer.status_code == 403
        assert press(browser, recruitment, "demographics").status_code == 403
        assert press(browser, recruitment, "erase", worker_id="A1").status_code == 403
        return
    assert answer.headers["Location"].startswith(
        "/marketplace-api/v1/recruiting/files/study-token/join.csv?key=AKIA&reader=rosa&"
    )
    assert AuditEntry.objects.get(action="export").details["file"].endswith("Prolific: join.csv")
    assert press(browser, recruitment, "demographics").status_code == 302
    finish_job(recruitment)
    assert press(browser, recruitment, "erase", worker_id=" A1IDENTIFIABLE ").status_code == 302
    assert [each["action"] for each in requested()] == ["demographics", "erase"]
    assert requested()[-1]["worker_id"] == "A1IDENTIFIABLE"
    assert "A1IDENTIFIABLE" not in str(AuditEntry.objects.get(action="recruitment.erase").details)


def test_the_desk_shows_who_pays_participants_and_how_much(rosa, study, recruitment, researcher):
    hits = recruitment.batch.hits.order_by("pk")
    made = [add_assignment(hits[0], "A1"), add_assignment(hits[1], "A1")]
    made.append(add_assignment(hits[0], "A2"))
    answer = rosa.get(reverse("console:review", args=["mine"]))
    assert (answer.context["n_queue"], answer.context["waiting"]["usd"]) == (3, 0)
    assert "$0.00" not in answer.content.decode()
    for one in made:
        models.DraftDecision.objects.create(assignment=one, reviewer=researcher, action="approve")
    later_study(recruitment, public_id="", reward=9, state="discarded")  # that nobody came by
    answer = rosa.get(reverse("console:review-send", args=["mine"]))
    [pay] = answer.context["recruiter_pay"]
    assert (pay["n_participants"], pay["rewards"], pay["currency"]) == (2, Decimal("3.00"), "GBP")
    assert answer.context["has_participants"]
    assert "$" not in re.sub("(?s)<script.*?</script>", "", answer.content.decode())


@pytest.mark.parametrize("kind", ["bonus", "approve"])
def test_an_uncertain_or_refused_call_is_settled_by_who_looked(rosa, recruitment, kind):
    """A decision that was refused can be sent again in the same way."""
    models.RecruiterCall.objects.update(is_uncertain=kind == "bonus", kind=kind)
    where = url(recruitment, "settle", recruitment.calls.get().pk)
    assert where in html(rosa, recruitment)
    assert rosa.post(where, {"was_done": "no"}).status_code == 302
    [arguments] = requested()
    expected = {"action": "settle", "call": 7, "was_done": False}
    assert {name: arguments[name] for name in expected} == expected


def test_a_refused_token_is_reported_once_at_its_field_and_never_shown(rosa, study):
    there = models.Connection.objects.create(team=study.team, name="There", marketplace="local")
    where = reverse("console:recruiter-connect", args=[study.team.slug])
    connections = reverse("console:connections", args=[study.team.slug])
    form = {"connection": there.pk, "name": "Lab", "token": "s3cret", "workspace": "5f5f"}
    text = rosa.post(where, form | {"workspace": "../../etc"}).content.decode()
    assert 'href="#id_recruiter_workspace">' in text
    assert re.search(
        'value="../../etc"[^>]*aria-describedby="[^"]*id_recruiter_workspace_error', text
    )
    assert "s3cret" not in text
    assert not Job.objects.of_kind("connect_to_recruiter").exists()
    rosa.post(where, form)
    jobs = Job.objects.of_kind("connect_to_recruiter")
    assert "s3cret" not in str(jobs.get().arguments)  # it is kept encrypted
    assert "s3cret" not in str(AuditEntry.objects.get(action="recruiter.connect").details)
    assert "s3cret" not in rosa.get(connections).content.decode()
    refusal = "Prolific does not accept the token."
    jobs.update(state="failed", message=refusal)
    add_recruiter(there, name="Lab", problem=refusal, is_connected=False)
    text = rosa.get(connections).content.decode()
    assert text.count(refusal) == 1
    token = re.search('<input type="password" name="token"[^>]*>', text)[0]
    assert 'aria-invalid="true"' in token
    assert 'aria-describedby="connecting-recruiter id_recruiter_token_helptext"' in token
    assert 'id="connecting-recruiter" role="alert"' in text
    assert re.search('name="workspace" value="5f5f"', text)
    assert "s3cret" not in text
    jobs.update(message="Prolific has no workspace 5f5f that this token may use.")
    text = rosa.get(connections).content.decode()
    assert "aria-invalid" not in re.search('<input type="password" name="token"[^>]*>', text)[0]
    assert "aria-invalid" in re.search('<input[^>]* name="workspace"[^>]*>', text)[0]


def test_others_batches_and_recruiters_are_hidden(rosa, study, recruitment, researcher, colleague):
    batch = add_batch(rating_study("other", owner=researcher))
    where = reverse("console:recruit-act", args=["other", batch.pk, recruitment.pk, "stop"])
    assert rosa.post(where, {"number": "0"}).status_code == 404
    team = teams.create_team(name="Other", owner=colleague)
    theirs = models.Connection.objects.create(team=team, name="Theirs", marketplace="local")
    recruiter = add_recruiter(theirs)
    form = {"connection": theirs.pk, "name": "P", "token": "t", "workspace": "5f"}
    rosa.post(reverse("console:recruiter-connect", args=[study.team.slug]), form)
    where = reverse("console:recruiter-disconnect", args=[study.team.slug, recruiter.pk])
    assert rosa.post(where).status_code == 404
    assert not Job.objects.exists()


def test_a_launch_for_participants_costs_nothing_here(study, researcher):
    connection = models.Connection.objects.create(
        team=study.team, name="Here", marketplace="local", fees="mturk"
    )
    start = pricing.LaunchView(study, researcher)
    data = {**start.form.data, "source": "recruiter", "reward_usd": "0.50", "countries": "DE"}
    view = pricing.LaunchView(study, researcher, data)
    assert (view.draft.is_recruited, view.draft.reward_usd) == (True, 0)
    assert (view.draft.requirements, view.cost.total_usd, view.wage) == ([], 0, None)
    found = {(finding.level, finding.field) for finding in view.findings}
    assert {("fault", "connection"), ("warning", "is_recruited")} <= found
    add_recruiter(connection)
    found = {(one.level, one.field) for one in pricing.LaunchView(study, researcher, data).findings}
    assert ("fault", "connection") not in found


def test_a_bonus_is_requested_in_the_accounts_currency_for_who_has_answered(rosa, recruitment):
    worker = add_assignment(models.Hit.objects.of(recruitment.batch).first()).worker
    facts = {"amount": "0.75", "reason": "Careful reasons.", "confirmed": "0.75"}
    refused = press(rosa, recruitment, "bonus", worker_id="NOBODY", **facts)
    assert (errors_of(refused), requested()) == ({"worker_id": ["unknown_worker"]}, [])
    given = facts | {"worker_id": worker.worker_id}
    assert press(rosa, recruitment, "bonus", **given).status_code == 302
    [asked] = requested()
    assert (asked["action"], asked["amount"]) == ("bonus", "0.75")
    assert (asked["worker_id"], asked["reason"]) == (worker.worker_id, "Careful reasons.")
    assert problem_code(press(rosa, recruitment, "bonus", **given)) == "changed_since"
    slip = press(rosa, recruitment, "bonus", **given | {"amount": "75"})
    assert errors_of(slip) == {"confirmed": ["not_amount"]}
    finish_job(recruitment)
    again = press(rosa, recruitment, "bonus", **given)
    assert problem_code(again) == "same_reason"
    assert [bonus.amount for bonus in again.context["recruiting"].bonuses] == ["0.75"]
    assert len(requested()) == 1
    another = given | {"reason": "And for the comment."}
    assert press(rosa, recruitment, "bonus", **another).status_code == 302


def test_a_bonus_of_more_than_ten_rewards_is_confirmed_twice(rosa, recruitment):
    """The reward is 1.50: a larger bonus may be a slip of a digit."""
    worker = add_assignment(models.Hit.objects.of(recruitment.batch).first()).worker
    facts = {"worker_id": worker.worker_id, "reason": "Careful."}
    large = facts | {"amount": "15.01", "confirmed": "15.01"}
    asked = press(rosa, recruitment, "bonus", **large)
    assert errors_of(asked) == {"is_large": ["large"]}
    assert 'name="is_large"' in asked.content.decode()
    assert requested() == []
    assert 'name="is_large"' not in html(rosa, recruitment)
    assert press(rosa, recruitment, "bonus", **large, is_large="on").status_code == 302
    finish_job(recruitment)
    ten = facts | {"amount": "15.00", "confirmed": "15.00", "reason": "And for the comment."}
    assert press(rosa, recruitment, "bonus", **ten).status_code == 302
    assert [one["amount"] for one in requested()] == ["15.01", "15.00"]


def test_a_bonus_of_who_came_by_another_account_is_refused_on_the_form(rosa, recruitment):
    """The batch had a study at an account in dollars, by which one of the two came."""
    later = later_study(recruitment)
    dollars = add_recruiter(recruitment.batch.connection, currency="USD")
    models.Recruitment.objects.filter(pk=recruitment.pk).update(state="stopped", recruiter=dollars)
    hits = models.Hit.objects.of(recruitment.batch).order_by("pk")[:2]
    for hit, name, minutes in zip(hits, ("B1", "S1"), (-60, 1), strict=True):
        came = models.Assignment.objects.filter(pk=add_assignment(hit, name).pk)
        came.update(accepted_at=later.created_at + timedelta(minutes=minutes))
    given = {"amount": "0.75", "reason": "Careful.", "confirmed": "0.75"}
    answer = press(rosa, later, "bonus", worker_id="B1", **given)
    assert (errors_of(answer), requested()) == ({"worker_id": ["other_account"]}, [])
    assert press(rosa, later, "bonus", worker_id="S1", **given).status_code == 302


@pytest.fixture
def participant(recruitment):
    hits = recruitment.batch.hits.order_by("pk")[:2]
    return [add_assignment(hit, "A1IDENTIFIABLE") for hit in hits]


def desk(browser, assignment, **more):
    address = reverse("console:review", args=["mine"])
    return browser.get(address, {"assignment": assignment.pk} | more)


def decide(browser, assignment, **form):
    address = reverse("console:review-draft", args=["mine", assignment.pk])
    return browser.post(address, {"text": "", "show": "waiting"} | form)


def test_the_desk_shows_a_participants_other_items_which_are_decided_alike(rosa, participant):
    one, other = participant
    answer = desk(rosa, one)
    assert list(answer.context["participant"].items) == [one, other]
    assert answer.context["participant"].problems == ["No answer came."]
    text = answer.content.decode()
    assert f"{page(one.hit.batch)}#participants" in text
    for never in ("do=part_pay", "do=bonus", "$"):
        assert never not in re.sub("(?s)<script.*?</script>", "", text)
    # The text of a refused rejection is kept once.
    assert desk(rosa, one, do="reject").context["form"]["text"].value() in (None, "")
    decide(rosa, one, action="reject", text="Too short.")
    assert not models.DraftDecision.objects.exists()
    assert "Too short." in desk(rosa, one, do="reject").content.decode()
    assert "Too short." not in desk(rosa, one, do="reject").content.decode()
    decide(rosa, one, action="reject", text="x" * 120)
    shown = desk(rosa, other).context["participant"].items
    assert [[draft.action for draft in item.drafts.all()] for item in shown] == [["reject"], []]
    decide(rosa, other, action="approve")
    [drafted] = models.DraftDecision.objects.all()
    assert (drafted.assignment, drafted.action) == (one, "reject")
    # One who came twice is decided each time by itself.
    models.Assignment.objects.filter(pk=other.pk).update(accepted_at=NOON + timedelta(minutes=9))
    decide(rosa, other, action="approve")
    assert models.DraftDecision.objects.count() == 2
    assert list(desk(rosa, one).context["participant"].items) == [one]


def test_a_refused_call_is_put_away_once_somebody_has_seen_it(rosa, recruitment):
    where = url(recruitment, "put-away", recruitment.calls.get().pk)
    rosa.post(where)  # nobody puts away a call without an answer
    text = html(rosa, recruitment)
    assert ("No answer came." in text, where in text) == (True, False)
    for name, *args in (("studies",), ("study", "mine")):
        assert "participants_to_look_after" in matters(rosa, name, *args)
    models.RecruiterCall.objects.update(is_uncertain=False)
    assert where in html(rosa, recruitment)
    assert rosa.post(where).status_code == 302
    assert "No answer came." not in html(rosa, recruitment)
    assert matters(rosa) == []


def test_the_desk_shows_a_participants_state_at_the_recruiter(rosa, participant, recruitment):
    assert codes_on(desk(rosa, participant[0]).content.decode()) == []
    row = recruitment.participations.create(worker_id="A1IDENTIFIABLE")
    for state, outcome, reported, code in (
        ("returned", "completed", "completed", "place_returned"),
        ("timed_out", "completed", "", "code_missing"),
        ("timed_out", "", "", "out_of_time"),
        ("finished", "completed", "other", "other_code"),
        ("finished", "completed", "no_consent", "other_code"),
    ):
        row.state, row.outcome, row.reported = state, outcome, reported
        row.save()
        answer = desk(rosa, participant[0])
        assert codes_on(answer.content.decode()) == [code]
    assert str(participants.OUTCOMES["no_consent"]) in answer.context["participant"].problems[0]


def test_a_bonus_is_not_sent_again_while_it_may_still_show(rosa, recruitment):
    buttons = 'name="was_done" value="([^"]*)"'
    models.RecruiterCall.objects.update(shows_by=timezone.now() + timedelta(minutes=30))
    assert re.findall(buttons, html(rosa, recruitment)) == ["yes"]
    models.RecruiterCall.objects.update(shows_by=timezone.now() - timedelta(minutes=1))
    assert re.findall(buttons, html(rosa, recruitment)) == ["yes", "no"]
    # To have a doubtful submission paid, one unfolds the button first.
    models.RecruiterCall.objects.update(kind="doubt")
    text = html(rosa, recruitment)
    assert re.findall(buttons, text) == ["no", "yes"]
    assert re.search(r'(?s)<details><summary(?:(?!</details>).)*name="was_done" value="yes"', text)


def test_recruiters_charges_are_shown_next_to_what_was_spent(rosa, study, recruitment, signed_in):
    charges = {"study": "8.00", "reward": "6.00", "bonus": "1.00", "screen_out": "0.27"}
    models.Recruitment.objects.update(charges=charges)
    [row] = rosa.get(reverse("console:studies")).context["rows"]
    assert (row["spent_usd"], row["paid_there"]) == (0, {"GBP": Decimal("7.27")})
    models.Connection.objects.update(team=study.team)
    connections = reverse("console:connections", args=[study.team.slug])
    [(_recruiter, paid, set_aside)] = rosa.get(connections).context["recruiters"]
    assert (paid, set_aside) == (Decimal("7.27"), Decimal("2.00"))
    assert "paid_in_all" not in notices(rosa, recruitment)
    models.Recruitment.objects.update(state="stopped")
    text = html(rosa, recruitment)
    assert "paid_in_all" in codes_on(text)
    assert "7.27 GBP" in text
    [(_recruiter, _paid, set_aside)] = rosa.get(connections).context["recruiters"]
    assert set_aside == 0
    analyst = colleague_as(roles.Role.ANALYST, study, signed_in)
    assert "GBP" not in analyst.get(reverse("console:studies")).content.decode()


def test_pages_warn_of_places_without_work_and_lost_recruiters(rosa, study, recruitment):
    assert "places_without_work" not in notices(rosa, recruitment)
    models.Recruitment.objects.update(needed=0)
    assert show(rosa, recruitment).study.n_for_nobody == 1
    for codes in (notices(rosa, recruitment), matters(rosa), matters(rosa, "study", "mine")):
        assert "places_without_work" in codes
    models.Recruitment.objects.update(needed=1)
    assert "places_without_work" not in notices(rosa, recruitment)
    models.Connection.objects.update(team=study.team)
    where = reverse("console:connections", args=[study.team.slug])
    [(recruiter, *_amounts)] = rosa.get(where).context["recruiters"]
    assert recruiter.n_open == 1
    models.Recruiter.objects.update(is_connected=False)
    text = html(rosa, recruitment)
    assert "recruiter_disconnected" in codes_on(text)
    assert "2026-03-02 12:00" not in text
    assert "recruiter_disconnected" in matters(rosa, "study", "mine")


def test_home_says_which_calls_the_recruiter_may_pay_by_time(rosa, recruitment):
    for kind, is_uncertain, note in (
        ("doubt", True, "paid_by_time"),
        ("doubt", False, "bonus_or_message"),  # paid already, as one who was screened out
        ("reject", False, "paid_by_time"),
        ("approve", False, "paid_by_time"),
        ("message", False, "bonus_or_message"),
        ("bonus", True, "bonus_or_message"),
    ):
        recruitment.calls.update(kind=kind, is_uncertain=is_uncertain)
        assert matters(rosa) == ["participants_to_look_after", note], kind
    # People are counted, not calls, and the gravest matter is named.
    worker = recruitment.calls.get().worker_id
    recruitment.calls.create(number=2, kind="bonus", is_uncertain=False, worker_id=worker)
    for n, note in ((1, "bonus_or_message"), (2, "paid_by_time")):
        [one] = rosa.get(reverse("console:studies")).context["decisions"]
        assert (one.message.lstrip("⟦")[:2], one.note.code) == (f"{n} ", note)
        recruitment.calls.create(number=3 + n, kind="doubt", is_uncertain=True, worker_id="A2OTHER")


def test_a_bonus_is_offered_and_shown_by_the_account_of_its_study(rosa, study, recruitment):
    """Another account, with a study of the batch that nobody has completed, pays none of them."""
    told = {"batch": recruitment.batch_id, "recruitment": recruitment.pk, "number": 1}
    told |= {"action": "bonus", "worker_id": "A1", "amount": "0.75", "reason": "Careful"}
    paid = request_study_job(study=study, kind=RECRUIT, arguments=told | {"is_sent": True})
    Job.objects.filter(pk=paid.pk).update(state="done")
    models.Recruitment.objects.update(state="stopped", outcomes={"completed": 1})
    later = later_study(recruitment)
    assert act_url(later, "bonus") in html(rosa, recruitment)
    later.recruiter = add_recruiter(recruitment.batch.connection, currency="USD")
    later.save()
    assert act_url(later, "bonus") not in html(rosa, recruitment)
    models.Recruitment.objects.filter(pk=later.pk).update(outcomes={"completed": 1})
    text = html(rosa, recruitment)
    assert "0.75 GBP" in text
    assert "0.75 USD" not in text


def test_a_reward_that_was_changed_at_the_recruiter_is_named(rosa, recruitment):
    models.Recruitment.objects.update(state="active", reward_there="1.5000")
    assert "reward_changed" not in notices(rosa, recruitment)
    models.Recruitment.objects.update(reward_there="2.2500", screen_out_reward_there="0.30")
    text = html(rosa, recruitment)
    assert {"reward_changed", "screen_out_reward_changed"} <= set(codes_on(text))
    for amount in ("2.25 GBP", "1.50 GBP", "0.30 GBP"):
        assert amount in text


def test_a_bonus_is_priced_with_fees_and_confirmed_by_that_cost(rosa, recruitment):
    worker = add_assignment(models.Hit.objects.of(recruitment.batch).first()).worker
    facts = {"worker_id": worker.worker_id, "reason": "Careful."}
    assert act_url(recruitment, "price_bonus") in html(rosa, recruitment)
    asked = press(rosa, recruitment, "price_bonus", **facts, amount="0.75", confirmed="")
    assert asked.status_code == 302
    [told] = requested()
    assert (told["action"], told["amount"]) == ("price_bonus", "0.75")
    models.Recruitment.objects.update(quoted_bonus="0.75", quoted_bonus_cost="1.0000")
    finish_job(recruitment)
    assert show(rosa, recruitment).bonus_form.cost == Decimal("1.00")
    shown = html(rosa, recruitment)
    assert "1.00 GBP" in shown
    assert f'value="{worker.worker_id}"' in shown
    bonus = facts | {"amount": "0.75"}
    slip = press(rosa, recruitment, "bonus", **bonus, confirmed="0.75")
    assert errors_of(slip) == {"confirmed": ["not_cost"]}
    assert len(requested()) == 1
    assert press(rosa, recruitment, "bonus", **bonus, confirmed="1.00").status_code == 302
    assert [one["action"] for one in requested()] == ["price_bonus", "bonus"]
