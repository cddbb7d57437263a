"""Fixtures: accounts and studies at the fake of Prolific, and studies of panels."""

from decimal import Decimal

import pytest

from benchmarks.fake_prolific.server import FakeProlific
from marketplace.recruiting.prolific.transport import Transport
from marketplace.recruiting.rules import RuleValues, create_rule
from tests.marketplace import prolific
from tests.marketplace.conftest import HIT

RULE = RuleValues(
    most_cost=Decimal(30), minutes=10, items_per_session=2, reward=Decimal("1.50"), words="Dialogue"
)
PID, OTHER_PID = "5b96601d3400a939f7c18c1f", "5b96601d3400a939f7c18c20"
HIT_HERE = HIT | {"Title": "Rate eight responses of a dialogue"}


@pytest.fixture(autouse=True)
def retry_at_once(monkeypatch):
    monkeypatch.setitem(Transport.__init__.__kwdefaults__, "sleep", lambda _seconds: None)


@pytest.fixture
def fake(settings):
    with FakeProlific() as running:
        settings.PROLIFIC_URL = running.url
        running.world.workspace = "5f" * 12
        yield running
        running.world.check()


@pytest.fixture
def connection(fake, requester):
    connection, account = prolific.connect(fake, requester, project=fake.world.project)
    assert (account.currency, account.available) == ("GBP", Decimal(1000))
    return connection


@pytest.fixture
def hit_type(mturk):
    return prolific.create_hits(mturk)


@pytest.fixture
def posted(connection, hit_type):
    return prolific.publish(connection, hit_type)


@pytest.fixture
def handed_in(fake, posted):
    return prolific.hand_in(fake, posted)


@pytest.fixture
def panel(mturk):
    return prolific.open_panel(
        prolific.create_hits(mturk, n=2, max_assignments=3), name="Two", items_per_session=2
    )


@pytest.fixture
def done(panel):
    prolific.work(prolific.came(panel, PID, "x1"), times=2)
    prolific.came(panel, OTHER_PID, "x2")
    return panel


@pytest.fixture
def rule(connection):
    return create_rule(connection=connection, values=RULE)


@pytest.fixture
def created(mturk, rule):
    return prolific.create_hits(mturk, **HIT_HERE)


@pytest.fixture
def ruled(created):
    prolific.settle()
    return created.recruited_studies.get()


@pytest.fixture
def ask(keys):
    return prolific.caller(keys)
