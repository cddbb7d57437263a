import httpx2
import pytest
from django.test import Client as Browser

from accounts.tokens import create_personal_token
from annotation.access import give_to_team
from assay_client import (
    Client,
    InvalidRequest,
    NotAllowed,
    NotSignedIn,
    NotThere,
    ServerUnreachable,
)
from hits.models import WorkerNote
from tests.annotation.studies import rating_study
from tests.codes import refused, refused_naming
from tests.console.filled import add_assignment, add_batch

pytestmark = pytest.mark.django_db
REFUSED, ANSWER_LOST = "refused", "answer lost"


def answer_in_process(request):
    headers = {name: value for name, value in request.headers.items() if name != "content-type"}
    response = Browser().generic(
        request.method,
        request.url.raw_path.decode(),
        request.read(),
        content_type=request.headers.get("content-type", ""),
        headers=headers,
    )
    return httpx2.Response(
        response.status_code, headers=dict(response.items()), content=response.content
    )


class Wire(httpx2.BaseTransport):
    def __init__(self):
        self.faults = []
        self.n_requests = 0

    def handle_request(self, request):
        self.n_requests += 1
        fault = self.faults.pop(0) if self.faults else ""
        if fault == REFUSED:
            raise httpx2.ConnectError("refused", request=request)
        response = answer_in_process(request)
        if fault == ANSWER_LOST:
            raise httpx2.ReadError("cut", request=request)
        return response


@pytest.fixture
def wire():
    return Wire()


@pytest.fixture
def client(wire, token):
    with Client("http://localhost", token, seconds_between=0, transport=wire) as client:
        yield client


@pytest.fixture
def note_address(rosa, team):
    """Where a note on a worker is written: each makes a row."""
    study = rating_study("mine", owner=rosa)
    give_to_team(study=study, team=team, actor=rosa)
    assignment = add_assignment(add_batch(study).hits.all()[0])
    return f"studies/mine/assignments/{assignment.pk}/note/"


@pytest.mark.parametrize("faults", [[REFUSED], [ANSWER_LOST], [ANSWER_LOST, REFUSED, ANSWER_LOST]])
def test_a_write_is_sent_again_and_done_once(client, wire, note_address, faults):
    wire.faults = list(faults)
    assert client.send("POST", note_address, {"note": "Careful."}) == {"note": "Careful."}
    assert wire.n_requests == len(faults) + 1
    assert WorkerNote.objects.count() == 1


def test_errors_have_the_address_or_the_servers_code_and_field(wire, rosa, note_address, client):
    with (
        Client("http://localhost", "assay_no", transport=wire) as nobody,
        pytest.raises(NotSignedIn),
    ):
        nobody.me()
    small = create_personal_token(user=rosa, name="small", scopes=["read"], days=7).text
    with Client("http://localhost", small, transport=wire) as reader, pytest.raises(NotAllowed):
        reader.send("POST", note_address, {"note": "Careful."})
    with refused(InvalidRequest, "invalid", status=400, field="note"):
        client.send("POST", note_address, {"note": ""})
    with pytest.raises(NotThere):
        client.study("nobodys")
    wire.faults = [REFUSED] * 20
    with refused_naming(ServerUnreachable, "http://localhost", "refused"):
        client.me()


def test_pages_are_gone_through(client, wire, rosa):
    for number in range(5):
        rating_study(f"study-{number}", owner=rosa)
    slugs = [row["slug"] for row in client.rows("studies/", limit=2)]
    assert slugs == [f"study-{number}" for number in (4, 3, 2, 1, 0)]
    assert wire.n_requests == 3
    assert list(client.studies(q="study-3")["slug"]) == ["study-3"]
