"""What a refused call says, and small parts of stories."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from marketplace.hits.assignments import accept_hit, submit_assignment
from marketplace.models import Hit, WorkerAccount
from tests.marketplace.conftest import HIT

QUESTION_FORM = """<QuestionForm xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2017-11-06/QuestionForm.xsd">
<Question><QuestionIdentifier>nextmove</QuestionIdentifier><IsRequired>true</IsRequired>
<QuestionContent><Text>Which move is next?</Text></QuestionContent>
<AnswerSpecification><SelectionAnswer><Selections>
<Selection><SelectionIdentifier>C</SelectionIdentifier><Text>c4</Text></Selection>
<Selection><SelectionIdentifier>D</SelectionIdentifier><Text>d4</Text></Selection>
</Selections></SelectionAnswer></AnswerSpecification></Question></QuestionForm>"""
ANSWER_KEY = """<AnswerKey xmlns="http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2005-10-01/AnswerKey.xsd">
<Question><QuestionIdentifier>nextmove</QuestionIdentifier>
<AnswerOption><SelectionIdentifier>D</SelectionIdentifier><AnswerScore>5</AnswerScore></AnswerOption>
</Question><QualificationValueMapping><PercentageMapping>
<MaximumSummedScore>5</MaximumSummedScore></PercentageMapping></QualificationValueMapping></AnswerKey>"""


def error_of(call: Callable[..., Any], **parameters: Any) -> dict[str, Any]:
    with pytest.raises(ClientError) as caught:
        call(**parameters)
    response: dict[str, Any] = caught.value.response
    assert response["ResponseMetadata"]["HTTPStatusCode"] == 400
    return response


def error_code(call: Callable[..., Any], **parameters: Any) -> str:
    code: str = error_of(call, **parameters)["Error"]["Code"]
    return code


def turk_code(call: Callable[..., Any], **parameters: Any) -> str:
    response = error_of(call, **parameters)
    assert response["Error"]["Code"] == "RequestError"
    assert re.search(r" \(\d{13}\)$", response["Error"]["Message"])
    assert response["Message"] == response["Error"]["Message"]
    code: str = response["TurkErrorCode"]
    return code.removeprefix("AWS.MechanicalTurk.")


def publish(mturk: Any, **changes: Any) -> str:
    hit_id: str = mturk.create_hit(**HIT | changes)["HIT"]["HITId"]
    return hit_id


def accept(worker: WorkerAccount, hit_id: str) -> str:
    return accept_hit(worker=worker, hit=Hit.objects.get(public_id=hit_id)).public_id


def hand_in(assignment_id: str, **answers: str) -> None:
    fields = [(name, [value]) for name, value in (answers or {"rating": "4"}).items()]
    submit_assignment(public_id=assignment_id, fields=fields)


def status_of(mturk: Any, hit_id: str) -> str:
    status: str = mturk.get_hit(HITId=hit_id)["HIT"]["HITStatus"]
    return status


def balances(mturk: Any) -> tuple[str, str]:
    balance = mturk.get_account_balance()
    return balance["AvailableBalance"], balance["OnHoldBalance"]


def all_pages(call: Callable[..., Any], member: str, **parameters: Any) -> list[Any]:
    """A list as clients read it that loop until a page is empty, as oTree's does: every page
    that isn't empty must have a token."""
    rows: list[Any] = []
    page = call(**parameters)
    while page[member]:
        assert page["NumResults"] == len(page[member])
        rows += page[member]
        page = call(**parameters, NextToken=page["NextToken"])
    assert "NextToken" not in page
    return rows
