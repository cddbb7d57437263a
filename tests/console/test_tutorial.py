import json
import re

import pytest

from config.catalogues import collected_messages
from metrics.scorers.registry import available
from tests import tutorial
from validation.study_report import REPORT_FILES

STEPS = list(tutorial.steps())
MOST_BYTES = 1_500_000
PLACEHOLDER = r"%\([\w.]+\)[ds]|%s"


@pytest.fixture(scope="module")
def page_texts():
    """Every text of the pages as a pattern, with a wildcard where something is filled in."""
    messages = collected_messages()
    ids = [entry.id if isinstance(entry.id, tuple) else (entry.id,) for entry in messages]
    return [_pattern(text) for group in ids for text in group if text]


def _pattern(text):
    parts = re.split(PLACEHOLDER, text)
    return r"[\w.,]+".join(re.escape(part.replace("%%", "%")) for part in parts)


def test_each_step_has_its_picture_and_each_picture_its_step():
    names = [name for step in STEPS for name in step.pictures]
    assert [len(step.pictures) for step in STEPS] == [1] * len(STEPS)
    assert [name[:2] for name in names] == [f"{n:02}" for n in range(1, len(STEPS) + 1)]
    assert [step.title.split(".")[0] for step in STEPS] == [
        f"{n}" for n in range(1, len(STEPS) + 1)
    ]
    assert sorted(path.name for path in tutorial.FOLDER.glob("*.webp")) == names
    assert sum((tutorial.FOLDER / name).stat().st_size for name in names) < MOST_BYTES


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.title)
def test_a_step_names_controls_of_the_pages_and_has_the_picture_of_its_text(step, page_texts):
    """Where this fails, `make tutorial` does what the text says now, and takes the pictures."""
    [name] = step.pictures
    assert json.loads(tutorial.MANIFEST.read_text())[name] == {
        "step": step.digest,
        "picture": tutorial.picture_digest(name),
    }
    worked = [name for one in step.instructions for name in one.words]
    assert [name for name in tutorial.names_in_bold(step) if name not in worked] == []
    assert [one.verb for one in step.instructions].count("picture") == 1
    # Names that the reader, the registry of metrics or the report's files gave are not texts.
    own = {one.words[0] for each in STEPS for one in each.instructions if one.verb == "write"}
    known = own | REPORT_FILES.keys() | {metric.name for metric in available()}
    assert [
        name
        for name in tutorial.names_in_bold(step)
        if name not in known and not any(_is_named(name, text) for text in page_texts)
    ] == []


def _is_named(name, pattern):
    if name.endswith("…") and re.match(re.escape(re.escape(name[:-1])), pattern):
        return True
    return re.fullmatch(pattern, name) is not None


def test_nothing_reads_like_an_instruction_that_is_not_done():
    """A sentence that begins with a verb of the tutorial's is one that a browser does."""
    for step in STEPS:
        text = tutorial.joined(step.text)
        for pattern in tutorial.INSTRUCTIONS.values():
            text = re.sub(pattern, "", text)
        left = re.findall(r"(?:^|[.;:] )((?:Press|Write|Tick|Open|Sign in|Download)\b[^.]*)", text)
        assert left == [], step.title
    assert "docs/tutorial.md" in (tutorial.PAGE.parents[1] / "README.md").read_text()
