"""What goes wrong with HITs is read on pages and in messages of jobs: its texts are translated."""

import ast
from decimal import Decimal
from pathlib import Path

import pytest

from annotation import imports, models
from annotation.readers.drafts import ReadingReport
from hits import costs, exceptions, selections
from hits.exceptions import AnswerUnreadable, BatchUnfit, MarketplaceFault, MarketplaceRefused
from tests.translation.pages import unmarked_in_text

HITS = Path(exceptions.__file__).parent
# Only commands say what these hold.
OF_COMMANDS = ("migrations", "management", "crowd")
ERRORS = {name for name in vars(exceptions) if name[0].isupper()} | {"JobPostponed"}


def words_of(text):
    """The words of a string that stands unmarked where an error is raised."""
    parts = text.values if isinstance(text, ast.JoinedStr) else [text]
    literal = (part.value for part in parts if isinstance(part, ast.Constant))
    return "".join(one for one in literal if isinstance(one, str) and any(map(str.isalpha, one)))


def unmarked_errors(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args:
            words = words_of(node.args[0])
            if node.func.id in ERRORS - {"NothingPublished"} and words:
                yield node.lineno, words


@pytest.mark.parametrize(
    ("source", "n"),
    [
        ('raise BatchUnfit("The batch is closed.")', 1),
        ('raise BatchUnfit(f"Batch {batch.pk} is closed.")', 1),
        ('raise BatchUnfit(_("Batch {batch} is closed.").format(batch=1))', 0),
        ('raise DecisionRefused(f"{assignment_id}: {message}")', 0),
        ('raise CommandError("Name a FILE.")', 0),
    ],
)
def test_a_text_outside_gettext_is_found(source, n):
    assert len(list(unmarked_errors(source))) == n


def test_every_text_of_an_error_is_marked():
    files = [path for path in HITS.rglob("*.py") if not {*OF_COMMANDS} & {*path.parts}]
    assert len(files) > 60
    found = {
        f"{path.name}:{line}": words
        for path in files
        for line, words in unmarked_errors(path.read_text())
    }
    assert found == {}


@pytest.mark.usefixtures("_pseudo_locale")
def test_an_error_is_in_the_language_of_who_reads_it():
    address = "https://m.example.org"
    errors = [
        MarketplaceRefused("X", "no", address=address),
        AnswerUnreadable("'answer' is 3"),
        MarketplaceFault("it stops"),
    ]
    data = [address, "X", "no", "'answer' is 3", "it stops"]
    assert all("⟦" in str(error) for error in errors)
    assert not any(unmarked_in_text(str(error), data) for error in errors)


def refused_draw():
    with pytest.raises(BatchUnfit) as refused:
        selections.draw([(1, "d0", "")], n_items=2, seed=1)
    return refused.value


@pytest.mark.usefixtures("_pseudo_locale")
@pytest.mark.parametrize("n", [1, 2])
def test_counts_in_messages_are_in_that_language_too(n):
    """Their nouns agree with their numbers as the language has it."""
    study = models.Study(slug="7")
    texts = [
        refused_draw(),
        costs.Estimate(n, n, Decimal(1), Decimal(1)),
        costs.Estimate(n, n, Decimal(1), Decimal(1), Decimal(1)),
        imports.ImportResult(study, n, n, n, n, ReadingReport()),
        imports.ImportResult(study, n, 0, 0, 0, ReadingReport()),
    ]
    sentences = [str(text) for text in texts]
    assert [text for text in sentences if unmarked_in_text(text, [])] == []
