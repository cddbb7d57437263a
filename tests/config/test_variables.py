import re

import pytest
from django.conf import settings as site

from config import apps, variables
from tests.processes import manage_in_each

# Beside each the words that say what to do.
WRONG = [
    ("DEBUG", "maybe", "it must be true or false"),
    ("HTTPS", "?", "it must be true or false"),
    ("OPERATORS_WITHOUT_SECOND_FACTOR", "perhaps", "it must be true or false"),
    ("MARKETPLACE_TESTING", "y e s", "it must be true or false"),
    ("WORK_KEEP_DAYS", "3O", "it must be a number from 0 up"),
    ("WORK_LEASE_SECONDS", "0", "it must be a number from 1 up"),
    ("MARKETPLACE_REQUEST_BURST", "1e400", "it must be a number from 0 up"),
    ("TRUSTED_PROXY_COUNT", "1.5", "it must be a whole number"),
    ("TRUSTED_CLIENT_IP_HEADER", "X-Real-IP: yes", "the name of a header, such as X-Real-IP"),
    ("EMAIL_URL", "mail.example.org", "a mail server, such as smtp+tls://"),
    (
        "EMAIL_URL",
        "smtp+tls://a:hidden-word@mail.example.org:abc",
        "a mail server, such as smtp+tls",
    ),
    ("CACHE_URL", "memory://hidden-word", "the address of a cache, such as redis://"),
    ("DATABASE_URL", "hidden-word", "sqlite:////FOLDER/assay.sqlite3 or postgres://"),
    ("DATABASE_URL", "oracle://a:hidden-word@db/x", "sqlite:////FOLDER/assay.sqlite3 or postgres"),
    ("AWS_ENDPOINT_URL_MTURK", "marketplace", "it must be an address such as https://"),
    ("MARKETPLACE_API_HOSTS", "mturk.example.org:443", "names of hosts, without ports, such as"),
    ("MARKETPLACE_API_HOSTS", "api.example.org,127.0.0.1", "the API needs a name of its own"),
    ("DOCS_URL", "docs", "it must be an address such as https://docs.example.org/"),
    ("SITE_URL", "http://127.0.0.1:99999", "it must be an address such as https://"),
    ("TASKS_BACKEND", "celery", "it must be database or rq"),
    ("MARKETPLACE_FEE_SCHEDULE", "amazon", "it must be none or mturk"),
]


@pytest.mark.slow
def test_a_wrong_value_is_refused_in_a_line_that_names_it_and_the_remedy():
    environments = [{name: value} for name, value, _remedy in WRONG]
    ended = manage_in_each("check", environments=environments, SITE_URL="http://127.0.0.1:8000")
    for (name, _value, remedy), (code, text) in zip(WRONG, ended, strict=True):
        assert code == 2, text
        [line] = text.strip().splitlines()
        assert line.startswith(name)
        assert remedy in line
        assert "hidden-word" not in line


def test_every_variable_is_in_the_example_and_usual_words_for_true_are_taken(monkeypatch):
    source = (site.BASE_DIR / "config" / "settings.py").read_text()
    reading = r"(?:variables|env|os\.environ)(?:\.\w+)?\(\s*\"([A-Z_]+)\""
    names = set(re.findall(reading, source))
    example = (site.BASE_DIR / ".env.example").read_text()
    assert len(names) > 60
    assert names - set(re.findall(r"\b[A-Z_]+\b", example)) == set()
    for words, value in (
        (("true", "True", "1", "yes", "on"), True),
        (("false", "0", "off", ""), False),
    ):
        for word in words:
            monkeypatch.setenv("MARKETPLACE_TESTING", word)
            assert variables.boolean("MARKETPLACE_TESTING", default=not value) is value


def test_a_name_that_is_written_wrongly_is_warned_of_with_the_likely_one(tmp_path, settings):
    settings.ENVIRONMENT_FILE = tmp_path / "site.env"
    settings.ENVIRONMENT_FILE.write_text(
        "# DATABSE_URL=\nDATABSE_URL=sqlite:///x\nexport TRUSTED_PROXY = 1\n"
        "SITE_URL=https://assay.example.org\nPOSTGRES_PASSWORD=x\nhttp_proxy=x\n"
    )
    first, second = apps.check_names(None)
    assert "sets DATABSE_URL, which nothing reads" in first.msg
    assert "Did you mean DATABASE_URL?" in first.hint
    assert "TRUSTED_PROXY_COUNT" in second.hint
    settings.ENVIRONMENT_FILE = tmp_path / "none.env"
    assert apps.check_names(None) == []
