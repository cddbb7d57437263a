"""What each operation of the schema does; the function has the operation's name."""

import csv
import io
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from benchmarks.fake_prolific.world import (
    FEE,
    BonusRun,
    Denied,
    Study,
    Subscription,
    World,
    new_id,
)

Body = dict[str, Any]
DEMOGRAPHICS = (
    *("Submission id", "Participant id", "Status", "Started at", "Completion code"),
    *("Age", "Sex", "Country of residence"),
)


@dataclass(frozen=True)
class Answer:
    body: Any
    headers: Mapping[str, str]


MOVES = {
    "PUBLISH": {"UNPUBLISHED"},
    "PAUSE": {"ACTIVE"},
    "START": {"PAUSED", "AWAITING REVIEW"},
    "STOP": {"ACTIVE", "PAUSED", "AWAITING REVIEW"},
}


def me(world: World, body: Body) -> Body:
    return {
        "id": world.user,
        "email": "researcher@example.org",
        "name": "A researcher",
        "current_project_id": world.project,
    }


def projects(world: World, body: Body, workspace: str) -> Body:
    return page(list(world.projects), body)


def balance(world: World, body: Body, workspace: str) -> Body:
    if workspace != world.workspace:
        raise Denied(404, "Not found.")
    held = sum((study.held * study.unit for study in world.studies.values()), Fraction())
    return {
        "currency_code": "GBP",
        "total_balance": float(world.available + held),
        "available_balance": float(world.available),
    }


def create_study(world: World, body: Body) -> Body:
    codes = [each["code"] for each in body.get("completion_codes", [])]
    if len(set(codes)) != len(codes):
        raise Denied(400, {"completion_codes": ["Codes must be unique in the study."]})
    created = {"project": world.project, "date_created": world.now.isoformat()}
    study = Study(new_id(), created | body)
    world.studies[study.id] = study
    return study.shown()


def study(world: World, body: Body, key: str) -> Body:
    return world.find("studies", key).shown()


def change_study(world: World, body: Body, key: str) -> Body:
    found: Study = world.find("studies", key)
    more = body.get("total_available_places", found.places) - found.places
    if found.status != "UNPUBLISHED":
        if more < 0:
            raise Denied(400, {"total_available_places": ["Places can only grow."]})
        world.hold(found, more)
        if more and found.status in {"COMPLETED", "AWAITING REVIEW"}:
            found.status = "ACTIVE"
    found.facts |= body
    return found.shown()


def delete_study(world: World, body: Body, key: str) -> None:
    if world.find("studies", key).status != "UNPUBLISHED":
        raise Denied(400, "Only drafts can be deleted.")
    del world.studies[key]


def project_studies(world: World, body: Body, project: str) -> Body:
    found = [each.shown() for each in world.studies.values() if each.facts["project"] == project]
    return page(found, body)


def move_study(world: World, body: Body, key: str) -> Body:
    found: Study = world.find("studies", key)
    if found.status not in MOVES[body["action"]]:
        raise Denied(400, f"A study that is {found.status} takes no {body['action']}.")
    if body["action"] == "PUBLISH":
        world.hold(found, found.places)
    if body["action"] == "STOP":
        world.stop(found)
    else:
        found.status = "PAUSED" if body["action"] == "PAUSE" else "ACTIVE"
    return found.shown()


def calculate_cost(world: World, body: Body) -> Body:
    total = Fraction(body["reward"]) * body["total_available_places"] * (1 + FEE)
    return {"total_cost": round(float(total), 2)}


def submissions(world: World, body: Body) -> Body:
    found = [each.shown() for each in world.of(world.find("studies", body.get("study", "")))]
    return page(found, body)


def submission(world: World, body: Body, key: str) -> Body:
    return world.find("submissions", key).shown()


def move_submission(world: World, body: Body, key: str) -> Body:
    found = world.find("submissions", key)
    if body["action"] == "REJECT":
        world.reject(found)
    elif body["action"] == "APPROVE" and found.status == "REJECTED":
        raise Denied(400, "The submission is REJECTED.")
    else:
        world.approve(found)
    return found.shown()


def request_return(world: World, body: Body, key: str) -> Body:
    found = world.find("submissions", key)
    found.return_requested = world.now
    return found.shown()


def prepare_bonuses(world: World, body: Body) -> Body:
    study: Study = world.find("studies", body["study_id"])
    rows = []
    for line in body["csv_bonuses"].split():
        key, amount = line.split(",")
        # a participant's id will do, too
        mine = [one for one in world.of(study) if key in (one.id, one.participant)]
        if not mine:
            raise Denied(400, f"{key} is not of this study.")
        rows.append((mine[-1], Fraction(amount) * 100))
    made, run = new_id(), BonusRun(rows)
    if len(rows) > 200:
        raise Denied(400, "There are more than 200 rows.")
    world.bonuses[made] = run
    return {
        "id": made,
        "amount": float(run.amount),
        "fees": float(run.amount * FEE),
        "vat": 0,
        "total_amount": round(float(run.total), 2),
    }


def pay_bonuses(world: World, body: Body, key: str) -> Body:
    # Pay, as often as it is said: the real one is not idempotent either.
    run: BonusRun = world.find("bonuses", key)
    if run.total > world.available:
        raise Denied(400, "Your balance is too low.")
    for found, amount in run.rows:
        world.pay("bonus", found, amount * (1 + FEE))
        found.bonuses.append(amount)
    return {"message": "The bonuses are being paid."}


def demographic_export(world: World, body: Body, key: str) -> str:
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(DEMOGRAPHICS)
    for one in world.of(world.find("studies", key)):
        age, sex = 18 + int(one.participant, 16) % 60, ("Female", "Male")[int(one.id, 16) % 2]
        times = one.started_at.isoformat(), one.entered_code or ""
        writer.writerow([one.id, one.participant, one.status, *times, age, sex, "United Kingdom"])
    return file.getvalue()


def workspaces(world: World, body: Body) -> Body:
    return page([{"id": world.workspace, "title": "Workspace"}], body)


def create_project(world: World, body: Body, workspace: str) -> Body:
    made = {"id": new_id(), "title": str(body["title"])}
    world.projects.append(made)
    return made


def studies(world: World, body: Body) -> Body:
    return page([each.shown() for each in world.studies.values()], body)


def study_cost(world: World, body: Body, key: str) -> Body:
    """What was paid so far, fees included, in minor units."""
    mine = {one.id for one in world.of(world.find("studies", key))}
    spent = {
        kind: float(sum(amount for one, paid, amount in world.paid if one == kind and paid in mine))
        for kind in ("reward", "bonus")
    }
    return {
        "rewards": {"total": {"amount": spent["reward"]}},
        "bonuses": {"total": {"amount": spent["bonus"]}},
    }


def unread_messages(world: World, body: Body) -> Body:
    return page([], body)


def screen_out(world: World, body: Body, key: str) -> Body:
    study, pay = world.find("studies", key), Fraction(str(body["bonus_per_submission"])) * 100
    if not study.facts.get("is_custom_screening"):
        raise Denied(400, "The study is not a custom screening study.")
    for one in body["submission_ids"]:
        found = world.find("submissions", one)
        found.status = "SCREENED OUT"
        world.pay("screen-out", found, pay * (1 + FEE))
    amount = {"amount": body["bonus_per_submission"], "currency": "GBP"}
    return {"message": "Screened out.", "payment_per_participant": amount}


def send_message(world: World, body: Body) -> None:
    world.messages.append(body)


def create_group(world: World, body: Body) -> Body:
    made = new_id()
    world.groups[made] = set(body.get("participant_ids", []))
    return {"id": made, "name": body["name"]}


def group_members(world: World, body: Body, key: str) -> Body:
    members: set[str] = world.find("groups", key)
    return page([{"participant_id": each} for each in sorted(members)], body)


def add_to_group(world: World, body: Body, key: str) -> Body:
    world.find("groups", key).update(body["participant_ids"])
    return page([{"participant_id": each} for each in sorted(world.groups[key])], {})


def remove_from_group(world: World, body: Body, key: str) -> Body:
    world.find("groups", key).difference_update(body["participant_ids"])
    return page([{"participant_id": each} for each in sorted(world.groups[key])], {})


def hook_secrets(world: World, body: Body) -> Body:
    mine = {"id": world.workspace, "value": world.hooks.secret, "workspace_id": world.workspace}
    return {"results": [mine] if world.hooks.secret else []}


def create_hook_secret(world: World, body: Body) -> Body:
    # Make the secret; what was signed with the one before is worth nothing then.
    world.hooks.secret = secrets.token_urlsafe(24)
    return hook_secrets(world, body)["results"][0]


def subscriptions(world: World, body: Body) -> Body:
    wanted = body.get("enabled", "true") == "true"
    found = [one for one in world.hooks.subscriptions.values() if one.is_enabled == wanted]
    first, size = int(body.get("offset", 0)), int(body.get("limit", 20))
    return {"results": [one.shown() for one in found][first : first + size]}


def subscribe(world: World, body: Body) -> Answer:
    if not world.hooks.secret:
        raise Denied(400, "Create a secret first.")
    made = Subscription(
        new_id(), body["event_type"], body["target_url"], body["workspace_id"], new_id()
    )
    world.hooks.subscriptions[made.id] = made
    return Answer(made.shown(), {"X-Hook-Secret": made.confirmation})


def confirm_subscription(world: World, body: Body, key: str) -> Body:
    found: Subscription | None = world.hooks.subscriptions.get(key)
    if found is None:
        raise Denied(404, "Not found.")
    if body["secret"] != found.confirmation:
        raise Denied(400, {"secret": ["It is not the one that was sent."]})
    found.is_enabled = True
    return found.shown()


def delete_subscription(world: World, body: Body, key: str) -> None:
    if world.hooks.subscriptions.pop(key, None) is None:
        raise Denied(404, "Not found.")


def page(rows: list[Body], query: Body) -> Body:
    """Return one page; a page past the end is 404, as theirs is."""
    number, size = int(query.get("page", 1)), int(query.get("page_size", 20))
    shown = rows[(number - 1) * size : number * size]
    if number > 1 and not shown:
        raise Denied(404, "Invalid page.")
    has_next = number * size < len(rows)
    following = f"{query.get('here', '')}page={number + 1}&page_size={size}" if has_next else None
    return {"results": shown, "_links": {"next": {"href": following}}}
