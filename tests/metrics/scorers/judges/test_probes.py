from metrics.scorers.judges.endpoint import Endpoint
from metrics.scorers.judges.probes import capabilities_of, stored_capabilities
from tests.metrics.scorers.judges.foreign import chat

PROBES = 6


def test_an_endpoint_is_probed_once_for_each_model_or_anew_if_asked_to(foreign, tmp_path):
    foreign.says(chat("2"))
    seen = capabilities_of(foreign.client(), tmp_path)
    assert capabilities_of(foreign.client(), tmp_path) == seen
    assert len(foreign.bodies) == PROBES
    assert stored_capabilities(Endpoint(base_url=foreign.base_url, model="other"), tmp_path) is None
    foreign.says(chat("2", "3"))
    assert capabilities_of(foreign.client(), tmp_path, anew=True).several_replies
    assert capabilities_of(foreign.client(), tmp_path).several_replies


def test_findings_that_cannot_be_read_or_written_are_none(foreign, tmp_path):
    foreign.says(chat("2"))
    capabilities_of(foreign.client(), tmp_path)
    [file] = tmp_path.iterdir()
    file.write_text('{"asked_model": "foreign"')
    capabilities_of(foreign.client(), tmp_path)
    assert len(foreign.bodies) == 2 * PROBES
    for _ in range(2):
        assert not capabilities_of(foreign.client(), file).several_replies
    assert len(foreign.bodies) == 4 * PROBES


def test_the_key_is_not_stored(foreign, tmp_path):
    foreign.says(chat("2"))
    capabilities_of(foreign.client(api_key="sesame"), tmp_path)
    [file] = tmp_path.iterdir()
    assert foreign.headers[0]["Authorization"] == "Bearer sesame"
    assert "sesame" not in file.read_text()
