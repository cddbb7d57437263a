"""Constraints of every operation: from the table, against botocore's service model, on the wire."""

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import botocore.loaders
import pytest
from botocore import xform_name
from botocore.config import Config
from botocore.exceptions import ClientError
from django.test import Client

from marketplace import exceptions, models
from marketplace.api import inputs
from marketplace.api.dispatch import OPERATIONS
from marketplace.qualifications.requests import request_qualification
from tests.boto_clients import in_process_client
from tests.codes import refused
from tests.marketplace.conformance.refusals import error_of, turk_code
from tests.marketplace.conformance.valid_requests import REQUESTS
from tests.marketplace.conftest import HIT, HIT_TYPE, HTML_QUESTION, make_type, submit

MODEL = botocore.loaders.Loader().load_service_model("mturk", "service-2")
SHAPES = MODEL["shapes"]
# Required by this marketplace, which keeps no layouts, or by nothing but the operation's text.
WRONG_TYPES = {
    inputs.Text: 7,
    inputs.Integer: "7",
    inputs.Boolean: "yes",
    inputs.Timestamp: "soon",
    inputs.ListOf: "one",
    inputs.Structure: "one",
}


class Break(NamedTuple):
    operation: str
    path: tuple[str | int, ...]
    value: Any
    message: str

    def __str__(self) -> str:
        return f"{self.operation} {'.'.join(map(str, self.path))} {self.message[-40:]}"

    def request(self) -> dict[str, Any]:
        request = copy.deepcopy(REQUESTS[self.operation])
        inner: Any = request
        for step in self.path[:-1]:
            inner = inner[step]
        inner[self.path[-1]] = self.value
        return request

    @property
    def wire_path(self) -> str:
        parts = [
            f"{step + 1}.member" if isinstance(step, int) else step[0].lower() + step[1:]
            for step in self.path
        ]
        return ".".join(parts)


def broken_values(kind: inputs.Kind) -> Iterator[tuple[Any, str]]:
    if isinstance(kind, inputs.Text):
        yield from _broken_texts(kind)
    if isinstance(kind, inputs.Integer):
        yield kind.minimum - 1, f"value greater than or equal to {kind.minimum}"
        yield kind.maximum + 1, f"value less than or equal to {kind.maximum}"
    if isinstance(kind, inputs.ListOf):
        if kind.max_length is not None:
            too_many = [_fitting(kind.member)] * (kind.max_length + 1)
            yield too_many, f"length less than or equal to {kind.max_length}"
        if kind.min_length:
            yield [], f"length greater than or equal to {kind.min_length}"
        if not isinstance(kind.member, inputs.Structure):
            for value, message in broken_values(kind.member):
                yield [value], message


def _broken_texts(kind: inputs.Text) -> Iterator[tuple[str, str]]:
    if kind.min_length:
        yield "", f"length greater than or equal to {kind.min_length}"
    if kind.max_length is not None:
        yield "1" * (kind.max_length + 1), f"length less than or equal to {kind.max_length}"
    if kind.pattern is not None:
        yield "no!", f"regular expression pattern: ^{kind.pattern}$"
    if kind.options:
        yield "Nope", f"enum value set: [{', '.join(kind.options)}]"


def _fitting(kind: inputs.Kind) -> Any:
    if isinstance(kind, inputs.Structure):
        return {name: _fitting(member.kind) for name, member in kind.members.items()}
    if isinstance(kind, inputs.ListOf):
        return []
    if isinstance(kind, inputs.Text):
        filler = "A1" if kind.pattern else "AB"
        return kind.options[0] if kind.options else filler
    return kind.minimum if isinstance(kind, inputs.Integer) else False


def breaks() -> Iterator[Break]:
    for operation, members in inputs.INPUTS.items():
        yield from _breaks_within(operation, members, REQUESTS[operation], ())


def _breaks_within(
    operation: str, members: dict[str, inputs.Member], request: Any, path: tuple[str | int, ...]
) -> Iterator[Break]:
    for name, member in members.items():
        here, kind = (*path, name), member.kind
        if member.is_required:
            yield Break(operation, here, None, "Member must not be null")
        for value, message in broken_values(kind):
            yield Break(operation, here, value, message)
        inner = request.get(name)
        if isinstance(kind, inputs.Structure) and inner is not None:
            yield from _breaks_within(operation, dict(kind.members), inner, here)
        if isinstance(kind, inputs.ListOf) and isinstance(kind.member, inputs.Structure) and inner:
            yield from _breaks_within(operation, dict(kind.member.members), inner[0], (*here, 0))


BREAKS = list(breaks())


@pytest.fixture
def unchecked(keys):
    config = Config(parameter_validation=False, retries={"total_max_attempts": 1})
    return in_process_client(keys, config)


def test_every_operation_is_offered_has_a_valid_request_and_is_called_in_the_suite():
    assert set(MODEL["operations"]) == set(inputs.INPUTS) == set(OPERATIONS) == set(REQUESTS)
    assert len(OPERATIONS) == 39
    texts = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    for operation in MODEL["operations"]:
        assert re.search(rf'\.{xform_name(operation)}\b|\("{operation}",', texts), operation
    values = inputs.read_request(inputs.INPUTS["ListHITs"], {"MaxResults": None, "Colour": "green"})
    assert values == {"NextToken": None, "MaxResults": 10}


@pytest.mark.parametrize("operation", inputs.INPUTS)
def test_the_valid_requests_break_nothing(operation):
    inputs.read_request(inputs.INPUTS[operation], REQUESTS[operation])
    assert set(REQUESTS[operation]) == set(inputs.INPUTS[operation])


@pytest.mark.parametrize("operation", [name for name, members in inputs.INPUTS.items() if members])
def test_a_request_that_breaks_a_constraint_says_which_and_where(unchecked, operation):
    of_operation = [broken for broken in BREAKS if broken.operation == operation]
    for broken in of_operation:
        with refused(exceptions.ProtocolError, "ValidationException") as caught:
            inputs.read_request(inputs.INPUTS[operation], broken.request())
        message = str(caught.value)
        assert f"'{broken.wire_path}'" in message, str(broken)
        assert broken.message in message
    broken = next(each for each in of_operation if each.value is not None)
    with pytest.raises(ClientError) as caught:
        getattr(unchecked, xform_name(operation))(**broken.request())
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert broken.wire_path in caught.value.response["Error"]["Message"]


@pytest.mark.parametrize("operation", inputs.INPUTS)
def test_a_value_of_the_wrong_type_cannot_be_read(operation):
    for name, member in inputs.INPUTS[operation].items():
        wrong = REQUESTS[operation] | {name: WRONG_TYPES[type(member.kind)]}
        with refused(exceptions.ProtocolError, "SerializationException"):
            inputs.read_request(inputs.INPUTS[operation], wrong)


# The transport of webhooks, which Amazon has not.
OURS = {"HTTPS"}


@pytest.mark.parametrize("operation", inputs.INPUTS)
def test_our_table_has_all_that_the_service_model_has(operation):
    _compare(
        inputs.Structure(inputs.INPUTS[operation]), MODEL["operations"][operation]["input"]["shape"]
    )


def _compare(kind: inputs.Kind, shape_name: str) -> None:
    shape = SHAPES[shape_name]
    if shape["type"] == "structure":
        assert isinstance(kind, inputs.Structure)
        assert set(kind.members) == set(shape["members"])
        required = {name for name, member in kind.members.items() if member.is_required}
        assert required == set(shape.get("required", []))
        for name, member in kind.members.items():
            _compare(member.kind, shape["members"][name]["shape"])
    elif shape["type"] == "list":
        assert isinstance(kind, inputs.ListOf)
        _compare(kind.member, shape["member"]["shape"])
    elif shape["type"] == "string":
        assert isinstance(kind, inputs.Text)
        _compare_texts(kind, shape)
    else:
        kinds = {
            "integer": inputs.Integer,
            "long": inputs.Integer,
            "boolean": inputs.Boolean,
            "timestamp": inputs.Timestamp,
        }
        assert isinstance(kind, kinds[shape["type"]])
        if isinstance(kind, inputs.Integer) and "max" in shape:
            assert (kind.minimum, kind.maximum) == (shape["min"], shape["max"])


def _compare_texts(kind: inputs.Text, shape: dict[str, Any]) -> None:
    if "pattern" in shape:
        assert f"^{kind.pattern}$" == shape["pattern"]
    if "max" in shape:
        assert (kind.min_length, kind.max_length) == (shape["min"], shape["max"])
    if "enum" in shape:
        assert set(kind.options) - OURS == set(shape["enum"])


def test_the_ends_of_the_ranges_are_accepted(mturk):
    edges = {"Title": "t" * 128, "Reward": "0.", "LifetimeInSeconds": 30, "MaxAssignments": 10**9}
    hit = mturk.create_hit(**HIT | edges)["HIT"]
    assert (hit["Reward"], hit["MaxAssignments"]) == ("0.00", 10**9)


@pytest.mark.parametrize(
    ("operation", "payload", "named"),
    [
        ("ListHITs", {"MaxResults": "10"}, "STRING_VALUE"),
        ("ListHITs", {"MaxResults": True}, "BOOLEAN_VALUE"),
        ("ListHITs", {"MaxResults": 10.5}, "NUMBER_VALUE"),
        ("ListHITs", {"NextToken": ["a"]}, "LIST_VALUE"),
        ("ListHITs", {"NextToken": {}}, "STRUCTURE_VALUE"),
        ("ListHITs", {"NextToken": "a\0"}, ""),
        ("ListHITs", {"NextToken": "\ud800"}, ""),
        *(
            ("UpdateExpirationForHIT", {"HITId": "A", "ExpireAt": at}, "")
            for at in ("soon", True, 1e300, 10**20)
        ),
    ],
)
def test_a_value_of_the_wrong_type_is_named(operation, payload, named):
    with refused(exceptions.ProtocolError, "SerializationException") as caught:
        inputs.read_request(inputs.INPUTS[operation], payload)
    assert named in str(caught.value)


@pytest.mark.parametrize("body", [b"not json", b"[1]", b'{"MaxResults": NaN}', b"[" * 100_000])
def test_a_body_that_is_no_json_object_is_refused(mturk, body):
    def replace(request, **kwargs):
        request.data = body

    mturk.meta.events.register("before-sign.mturk.*", replace)
    assert error_of(mturk.list_hits)["Error"]["Code"] == "SerializationException"


@pytest.mark.parametrize("target", ["0117.PayEverybody", "0118.ListHITs", "0117ListHITs", ""])
def test_an_operation_that_does_not_exist_is_unknown(mturk, target):
    def replace(request, **kwargs):
        del request.headers["X-Amz-Target"]
        request.headers["X-Amz-Target"] = f"MTurkRequesterServiceV2017{target}"

    mturk.meta.events.register("before-sign.mturk.*", replace)
    assert error_of(mturk.list_hits)["Error"]["Code"] == "UnknownOperationException"


def test_only_a_signed_post_within_the_limit_is_a_call(db, mturk, settings):
    assert Client().get("/requester").status_code == 405
    response = Client().post("/requester/", b"{}", content_type="application/x-amz-json-1.1")
    assert response.status_code == 400
    assert json.loads(response.content)["__type"] == "MissingAuthenticationTokenException"
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    with pytest.raises(ClientError) as caught:
        mturk.create_hit(**HIT | {"Description": "d" * 1000})
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 413


ADULT = "00000000000000000060"  # a type of the marketplace's own
NO_HIT, NO_HIT_TYPE = "HITDoesNotExist", "HITTypeDoesNotExist"
NO_ASSIGNMENT = "AssignmentDoesNotExist"
NO_TYPE, NO_REQUEST = "QualificationTypeDoesNotExist", "QualificationRequestDoesNotExist"
LIVE = {"LifetimeInSeconds": 60, "Question": HTML_QUESTION}
NO = {"RequesterFeedback": "no"}

# The operation, the id that it is given, its other parameters, and the code of the refusal.
REFUSALS = [
    ("GetHIT", "HITId", {}, NO_HIT),
    ("DeleteHIT", "HITId", {}, NO_HIT),
    ("UpdateExpirationForHIT", "HITId", {"ExpireAt": 0}, NO_HIT),
    ("UpdateHITReviewStatus", "HITId", {}, NO_HIT),
    ("UpdateHITTypeOfHIT", "HITId", {"HITTypeId": "OWN"}, NO_HIT),
    ("CreateAdditionalAssignmentsForHIT", "HITId", {"NumberOfAdditionalAssignments": 1}, NO_HIT),
    ("ListAssignmentsForHIT", "HITId", {}, NO_HIT),
    ("ListReviewPolicyResultsForHIT", "HITId", {}, NO_HIT),
    ("ListBonusPayments", "HITId", {}, NO_HIT),
    ("CreateHITWithHITType", "HITTypeId", LIVE, NO_HIT_TYPE),
    ("UpdateHITTypeOfHIT", "HITTypeId", {"HITId": "OWN"}, NO_HIT_TYPE),
    ("ListReviewableHITs", "HITTypeId", {}, NO_HIT_TYPE),
    ("UpdateNotificationSettings", "HITTypeId", {"Active": True}, NO_HIT_TYPE),
    ("GetAssignment", "AssignmentId", {}, NO_ASSIGNMENT),
    ("ApproveAssignment", "AssignmentId", {}, NO_ASSIGNMENT),
    ("RejectAssignment", "AssignmentId", NO, NO_ASSIGNMENT),
    ("GetFileUploadURL", "AssignmentId", {"QuestionIdentifier": "photo"}, NO_ASSIGNMENT),
    ("ListBonusPayments", "AssignmentId", {}, NO_ASSIGNMENT),
    (
        "SendBonus",
        "AssignmentId",
        {"WorkerId": "WORKER", "BonusAmount": "0.10", "Reason": "Good"},
        NO_ASSIGNMENT,
    ),
    ("UpdateQualificationType", "QualificationTypeId", {}, NO_TYPE),
    ("DeleteQualificationType", "QualificationTypeId", {}, NO_TYPE),
    ("ListWorkersWithQualificationType", "QualificationTypeId", {}, NO_TYPE),
    ("ListQualificationRequests", "QualificationTypeId", {}, NO_TYPE),
    ("AssociateQualificationWithWorker", "QualificationTypeId", {"WorkerId": "WORKER"}, NO_TYPE),
    ("DisassociateQualificationFromWorker", "QualificationTypeId", {"WorkerId": "WORKER"}, NO_TYPE),
    ("GetQualificationScore", "QualificationTypeId", {"WorkerId": "WORKER"}, NO_TYPE),
    ("AcceptQualificationRequest", "QualificationRequestId", {}, NO_REQUEST),
    ("RejectQualificationRequest", "QualificationRequestId", {}, NO_REQUEST),
]
READABLE_BY_ALL = [
    ("GetQualificationType", "QualificationTypeId", {}, NO_TYPE),
    ("ListHITsForQualificationType", "QualificationTypeId", {}, NO_TYPE),
]
OF_WORKERS = [
    ("AssociateQualificationWithWorker", "QualificationTypeId"),
    ("GetQualificationScore", "QualificationTypeId"),
    ("CreateWorkerBlock", None),
    ("DeleteWorkerBlock", None),
]


@pytest.fixture
def ids(mturk, worker):
    hit = mturk.create_hit(**HIT)["HIT"]
    chess = make_type(mturk)
    stored = models.QualificationType.objects.get()
    assignment = submit(worker, hit["HITId"])
    request = request_qualification(worker=worker, qualification_type=stored).public_id
    mturk.associate_qualification_with_worker(QualificationTypeId=chess, WorkerId=worker.worker_id)
    return {
        "HITId": hit["HITId"],
        "HITTypeId": hit["HITTypeId"],
        "AssignmentId": assignment,
        "QualificationTypeId": chess,
        "QualificationRequestId": request,
    }


def codes(client, rows, ids, own):
    found = []
    for operation, name, others, _code in rows:
        filled = {key: own.get((key, value), value) for key, value in others.items()}
        call = getattr(client, xform_name(operation))
        found.append((operation, turk_code(call, **{name: ids[name]} | filled)))
    return found


def test_what_is_another_requesters_or_missing_does_not_exist(mturk, other_lab, ids, worker):
    own_hit = other_lab.create_hit(**HIT)["HIT"]["HITId"]
    own_type = other_lab.create_hit_type(**HIT_TYPE)["HITTypeId"]
    own = {("HITId", "OWN"): own_hit, ("HITTypeId", "OWN"): own_type}
    own |= {("WorkerId", "WORKER"): worker.worker_id}
    missing = dict.fromkeys(ids, "NONE")
    rows = [*REFUSALS, *READABLE_BY_ALL]
    expected = [(operation, code) for operation, _, _, code in rows]
    assert codes(other_lab, REFUSALS, ids, own) == expected[: len(REFUSALS)]
    assert codes(other_lab, rows, missing, own) == expected
    of_theirs = [row for row in REFUSALS if row[1] == "QualificationTypeId"][:5]
    for operation, code in codes(mturk, of_theirs, {"QualificationTypeId": ADULT}, own):
        assert code == NO_TYPE, operation
    assert other_lab.list_hits()["NumResults"] == 1
    assert other_lab.list_qualification_requests()["NumResults"] == 0
    kept = mturk.get_assignment(AssignmentId=ids["AssignmentId"])["Assignment"]
    assert kept["AssignmentStatus"] == "Submitted"
    for operation, name in OF_WORKERS:
        parameters = {"WorkerId": "A0NOBODY"} | ({name: ids[name]} if name else {})
        if operation == "CreateWorkerBlock":
            parameters["Reason"] = "Bots"
        code = turk_code(getattr(mturk, xform_name(operation)), **parameters)
        assert code == "InvalidParameterValue", operation
