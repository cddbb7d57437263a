"""What a worker is shown of a HIT: a frame, or a form of our own."""

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from marketplace import clock
from marketplace.documents.answers import FilledForm, blank, fill_in
from marketplace.documents.question_forms import QuestionForm, parse_question_form
from marketplace.exceptions import HitDoesNotExist
from marketplace.models import Assignment, Hit, PaidBy, WorkerAccount
from marketplace.recruiting.sessions import place_of
from marketplace.web.worker.continuation import accepts_next_by_itself
from marketplace.web.worker.drafts import participants_due
from marketplace.web.worker.frames import Frame, frame_for, question_of


@dataclass(frozen=True)
class Task:
    """One of the two."""

    frame: Frame | None
    filled: FilledForm | None


def task_for(
    request: HttpRequest, hit: Hit, assignment: Assignment | None, worker: WorkerAccount
) -> Task:
    """The HIT's task, to be worked on or, without an assignment, only to be seen."""
    if question_of(hit).kind == "form":
        return Task(None, blank(form_of(hit)))
    return Task(frame_for(request, hit, assignment, worker), None)


def work_context(
    request: HttpRequest, assignment: Assignment, task: Task, state: dict[str, Any]
) -> dict[str, Any]:
    """What the page to work on is made of, with its task as it stands."""
    return {
        "worker": assignment.worker,
        "assignment": assignment,
        "hit": assignment.hit,
        "task": task,
        "auto_accept": accepts_next_by_itself(request),
        "state": state,
        "due": participants_due(assignment),
        "now": clock.now(),
        "place": place_of(assignment) if assignment.paid_by == PaidBy.RECRUITER else None,
    }


def form_of(hit: Hit) -> QuestionForm:
    """The HIT's QuestionForm; other HITs have none."""
    if question_of(hit).kind != "form":
        raise HitDoesNotExist(hit.public_id)
    return parse_question_form(hit.question)


def filled_in(request: HttpRequest, form: QuestionForm) -> FilledForm:
    """The form with what was posted."""
    return fill_in(form, request.POST.getlist)
