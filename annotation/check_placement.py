"""Quality checks drawn onto pages: which page bears which, and what it shows.

All is drawn by hashes of the protocol's seed, so that the same study gets the same checks, and
then stored: a page shows the same to whoever opens it, however often.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice

from annotation.models import Candidate, Item, PlacedCheck, Protocol
from annotation.protocols.documents import read_document
from annotation.protocols.fields import CANDIDATE
from annotation.protocols.records import (
    MADE_KINDS,
    QUESTION_CHECK,
    Check,
    CheckCase,
    ProtocolDocument,
    ProtocolQuestion,
)
from annotation.protocols.scales import range_of
from annotation.protocols.validation import KNOWN_VALUES, checked_question

# As a share of the scale, where the protocol sets no tolerance; categories have none.
TOLERANCES = {"gold": 0.2, "repeat": 0.2, "instructed": 0.05, QUESTION_CHECK: 0.05}
# Of a text's words, which others replace.
DEGRADED_SHARE = 0.5
LEAST_DEGRADED_WORDS = 3


def place_checks(
    *, protocol: Protocol, new_items: Sequence[int], n_items: int
) -> list[PlacedCheck]:
    """Store the checks of a version on pages that are about to be published.

    `n_items` is how many pages of the version there are, these among them: a check is on its
    share of them all, and on one at least.
    """
    document = read_document(protocol.document)
    if not document.all_checks or not new_items:
        return []
    pages = list(Item.objects.filter(pk__in=new_items).order_by().values_list("pk", "key"))
    n_placed = Counter(
        PlacedCheck.objects.filter(protocol=protocol).values_list("number", flat=True)
    )
    load: Counter[int] = Counter()
    placed: list[PlacedCheck] = []
    for number, check in enumerate(document.all_checks):
        n_wanted = max(round(check.share * n_items), 1) if check.share else 0
        draw = _Draw(protocol, document, number, check)
        ranked = sorted((load[pk], draw.rank(key), pk) for pk, key in pages)
        for row in islice(
            draw.rows([pk for *_, pk in ranked]), max(n_wanted - n_placed[number], 0)
        ):
            load[row.item_id] += 1
            placed.append(row)
    return PlacedCheck.objects.bulk_create(placed, batch_size=500)


def example_check(document: ProtocolDocument, number: int, item: Item) -> PlacedCheck | None:
    return _Draw(
        Protocol(study=item.study), document, number, document.all_checks[number]
    ).placed_on(item)


def example_questions(document: ProtocolDocument, item: Item) -> list[PlacedCheck]:
    """All questions that are checks, placed on one page, for previews."""
    numbers = range(len(document.checks), len(document.all_checks))
    placed = (example_check(document, number, item) for number in numbers)
    return [each for each in placed if each is not None]


@dataclass(frozen=True)
class _Draw:
    protocol: Protocol
    document: ProtocolDocument
    number: int
    check: Check

    @property
    def seed(self) -> int:
        return self.document.order.seed

    def rank(self, key: str) -> str:
        return sha256(f"{self.seed}\n{self.number}\n{key}".encode()).hexdigest()

    def rows(self, items: Sequence[int]) -> Iterator[PlacedCheck]:
        for pk in items:
            item = Item.objects.select_related("study").get(pk=pk)
            if (row := self.placed_on(item)) is not None:
                yield row

    def placed_on(self, item: Item) -> PlacedCheck | None:
        question = checked_question(self.document, self.check)
        if question is None:
            return None
        rng = random.Random(self.rank(item.key))
        row = PlacedCheck(
            protocol=self.protocol,
            item=item,
            number=self.number,
            kind=self.check.kind,
            question=question.name,
            blind_key=self._blind_key(item),
            tolerance=tolerance_of(self.check, question),
            seed=self.seed,
        )
        if row.is_question and question.about == CANDIDATE:
            row.compared = rng.choice(list(item.candidates.all()))
        show = self._make if self.check.kind in MADE_KINDS else self._fill
        return row if show(row, item, rng) else None

    def _blind_key(self, item: Item) -> str:
        source = f"{item.study.pseudonym_salt}\n{self.protocol.fingerprint}\n{self.rank(item.key)}"
        return sha256(source.encode()).hexdigest()[:12]

    def _make(self, row: PlacedCheck, item: Item, rng: random.Random) -> bool:
        candidates = list(item.candidates.all())
        if row.kind == "degraded":
            candidates = [each for each in candidates if each.text.split()]
        if not candidates:
            return False
        row.compared = rng.choice(candidates)
        row.text, row.picture_id = row.compared.text, row.compared.picture_id
        if row.kind == "degraded":
            row.text = degraded_text(row.text, _donor(item, rng), rng)
            return row.text != row.compared.text
        return True

    def _fill(self, row: PlacedCheck, item: Item, rng: random.Random) -> bool:
        cases = [each for each in self.check.cases if each.item in ("", item.key)]
        own = [each for each in cases if each.item] or cases
        if not own:
            return False
        case = rng.choice(own)
        row.text = case.candidate
        if (source := _source(item, case)) is not None:
            text = source.context if isinstance(source, Item) else source.text
            row.text, row.picture_id = case.candidate or text, source.picture_id
        row.expected = KNOWN_VALUES.get(self.check.kind) if case.value is None else case.value
        return True


def _source(item: Item, case: CheckCase) -> Item | Candidate | None:
    if not case.source_item:
        return None
    source = item.study.items.filter(key=case.source_item).first()
    if source is None or not case.source_candidate:
        return source
    return source.candidates.filter(key=case.source_candidate).first()


def _donor(item: Item, rng: random.Random) -> str:
    others = Candidate.objects.filter(item__study=item.study_id).exclude(item=item)
    others = others.exclude(text="").order_by("item__position", "item_id", "position", "pk")
    n = others.count()
    return others[rng.randrange(n)].text if n else ""


def degraded_text(text: str, donor: str, rng: random.Random) -> str:
    """The text with a stretch of its words replaced by words of another, as Graham et al. (2017)
    make a bad reference; shuffled where there is no other."""
    words, other = text.split(), donor.split()
    n = min(max(LEAST_DEGRADED_WORDS, round(DEGRADED_SHARE * len(words))), len(words))
    start = rng.randrange(len(words) - n + 1)
    if other:
        first = rng.randrange(len(other))
        stretch = [other[(first + number) % len(other)] for number in range(n)]
    else:
        stretch = rng.sample(words[start : start + n], n)
    return " ".join([*words[:start], *stretch, *words[start + n :]])


def tolerance_of(check: Check, question: ProtocolQuestion) -> float:
    if check.tolerance is not None:
        return check.tolerance
    if question.kind not in ("line", "number", "likert"):
        return 0.0
    low, high = range_of(question)
    tolerance = TOLERANCES.get(check.kind, 0.0) * (high - low)
    return float(round(tolerance)) if question.kind == "likert" else tolerance
