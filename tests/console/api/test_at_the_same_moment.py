import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from django.db import connection

from accounts.models import AuditEntry
from accounts.teams import create_team
from annotation.models import Study
from console.models import StoredAnswer
from tests.annotation.studies import rating_study
from tests.console.api.conftest import Program, program_of

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = 4
BODY = {"title": "Copy", "copy_of": "mine", "team": "lab"}


@pytest.mark.parametrize("is_same", [True, False])
def test_a_key_is_used_once_however_many_send_it(researcher, is_same):
    team = create_team(name="Lab", owner=researcher)
    rating_study("mine", owner=researcher, team=team)
    text = program_of(researcher, "write").defaults["HTTP_AUTHORIZATION"].removeprefix("Bearer ")
    barrier = threading.Barrier(AT_ONCE)

    def send(number: int) -> tuple[int, bytes]:
        with closing(connection):
            program = Program(text)
            body = BODY if is_same else BODY | {"title": f"Copy {number}"}
            barrier.wait(timeout=30)
            headers = {"Idempotency-Key": "one"}
            answer = program.send("post", "/api/v1/studies/", body, **headers)
            return answer.status_code, answer.content

    with ThreadPoolExecutor(AT_ONCE) as pool:
        answers = list(pool.map(send, range(AT_ONCE)))
    statuses = sorted(status for status, _ in answers)
    assert statuses == ([201] * AT_ONCE if is_same else [201] + [422] * (AT_ONCE - 1))
    assert len({content for status, content in answers if status == 201}) == 1
    assert Study.objects.count() == 2
    assert StoredAnswer.objects.count() == 1
    assert AuditEntry.objects.filter(action="study.create").count() == 1
