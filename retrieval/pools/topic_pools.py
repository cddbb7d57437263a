from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256

import numpy as np

from retrieval.pools.catalogue import Catalogue
from retrieval.pools.records import UNIFORM, DrySource, Reason, Replacement, Slot, Target

# The list of all sources together, by reciprocal rank fusion.
FUSED = "fused"
# The most draws per document before the rest of the catalogue is listed instead.
MOST_REJECTED = 20


def topic_seed(seed: int, topic: str) -> list[int]:
    return [seed, int.from_bytes(sha256(topic.encode()).digest()[:8], "big")]


@dataclass
class Rules:
    catalogue: Catalogue
    excluded: frozenset[str]
    cap: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    capped: set[str] = field(default_factory=set)

    def reason_against(self, docno: str) -> Reason | None:
        document = self.catalogue.documents.get(docno)
        if document is None:
            return "unknown"
        if docno in self.excluded:
            return "excluded"
        if document.problem:
            return "picture"
        return "cap" if docno in self.capped else None

    def count(self, docnos: Iterable[str]) -> None:
        if self.cap:
            self.counts.update(list(docnos))
            self.capped |= {docno for docno in docnos if self.counts[docno] >= self.cap}

    @cached_property
    def frame(self) -> list[str]:
        """The documents that can be drawn: the first of those that look the same."""
        first: dict[str, str] = {}
        for docno in self.catalogue.documents:
            if self.reason_against(docno) in (None, "cap"):
                first.setdefault(self.catalogue.content(docno), docno)
        return list(first.values())

    @cached_property
    def framed(self) -> frozenset[str]:
        return frozenset(map(self.catalogue.content, self.frame))


class TopicPool:
    def __init__(
        self,
        target: Target,
        lists: Mapping[str, Sequence[str]],
        rules: Rules,
        seed: Sequence[int],
    ) -> None:
        self.target = target
        self.slots: list[Slot] = []
        self.replacements: list[Replacement] = []
        self.dry: list[DrySource] = []
        self.ended: set[str] = set()
        self.docnos: dict[str, None] = {}
        self._lists, self._rules = lists, rules
        self._content = rules.catalogue.content
        self._rng = np.random.default_rng(seed)
        self._contents: dict[str, str] = {}
        self._ranks: dict[str, int] = dict.fromkeys(lists, 0)
        if target.docno:
            self._contents[self._content(target.docno)] = target.docno

    def fill_quotas(self, quotas: Mapping[str, int]) -> None:
        """Sources take turns, one slot each; what an ended list leaves open, the next ones fill."""
        order = self._turns(quotas)
        open_slots = dict(quotas)
        is_filled = True
        while is_filled:
            is_filled = False
            for source in order:
                if open_slots[source] and self._fill_from(source, quota=source):
                    open_slots[source] -= 1
                    is_filled = True
        for source, n in open_slots.items():
            if n:
                self._fill_for(source, n, order, quotas[source])

    def fill_to_depth(self, depth: int) -> None:
        """Every source's first documents; what another source has already is no replacement."""
        order = self._turns(self._lists)
        for rank in range(1, min(depth, max(map(len, self._lists.values()), default=0)) + 1):
            for source in order:
                if rank > len(self._lists[source]):
                    continue
                docno = self._lists[source][rank - 1]
                if docno not in self.docnos and not self._passed_over(docno, source, rank):
                    self._place(docno, source, rank)

    def fill_by_fusion(self, n: int, constant: int, depth: int) -> None:
        order = self._turns(self._lists)
        sums: dict[str, float] = {}
        best: dict[str, tuple[int, str]] = {}
        for source in order:
            for rank, docno in enumerate(self._lists[source][:depth], 1):
                sums[docno] = sums.get(docno, 0.0) + 1 / (constant + rank)
                if docno not in best or rank < best[docno][0]:
                    best[docno] = rank, source
        # Sums to 12 digits: the order of adding is the seed's, and must not break ties.
        fused = sorted(sums, key=lambda docno: (-round(sums[docno], 12), docno))
        for rank, docno in enumerate(fused, 1):
            if len(self.slots) == n:
                return
            if not self._passed_over(docno, FUSED, rank):
                source_rank, source = best[docno]
                self._place(docno, source, source_rank)
        if (n_missing := n - len(self.slots)) > 0:
            self.dry.append(DrySource(self.target.topic, FUSED, n, len(fused), n_missing))

    def fill_uniformly(self, n: int) -> int:
        if not n:
            return 0
        barred = set(self._contents) | {self._content(each) for each in self._rules.capped}
        n_rest = len(self._rules.frame) - sum(each in self._rules.framed for each in barred)
        drawn = self._drawn(min(n, n_rest), n_rest, barred)
        for number, docno in enumerate(drawn, 1):
            self._place(docno, UNIFORM, number, inclusion=len(drawn) / n_rest)
        if (n_missing := n - len(drawn)) > 0:
            self.dry.append(DrySource(self.target.topic, UNIFORM, n, n_rest, n_missing))
        return len(drawn)

    def also(self, slot: Slot) -> tuple[tuple[str, int], ...]:
        return tuple(
            (source, ranks[slot.docno])
            for source, ranks in self._rank_by_source.items()
            if source != slot.source and slot.docno in ranks
        )

    @cached_property
    def _rank_by_source(self) -> dict[str, dict[str, int]]:
        return {
            source: {docno: rank for rank, docno in enumerate(listed, 1) if docno in self.docnos}
            for source, listed in self._lists.items()
        }

    def _turns(self, sources: Iterable[str]) -> list[str]:
        names = list(sources)
        return [names[each] for each in self._rng.permutation(len(names))]

    def _fill_for(self, source: str, n: int, order: Sequence[str], quota: int) -> None:
        at = order.index(source)
        others = [*order[at + 1 :], *order[:at]]
        filled_by: list[str] = []
        for _ in range(n):
            while others and not self._fill_from(others[0], quota=source):
                others.pop(0)
            if not others:
                break
            filled_by.append(others[0])
            others.append(others.pop(0))
        self.dry.append(
            DrySource(
                self.target.topic, source, quota, len(self._lists[source]), n, tuple(filled_by)
            )
        )

    def _fill_from(self, source: str, *, quota: str) -> bool:
        listed = self._lists[source]
        while self._ranks[source] < len(listed):
            docno = listed[self._ranks[source]]
            self._ranks[source] += 1
            if not self._passed_over(docno, source, self._ranks[source]):
                self._place(docno, source, self._ranks[source], quota=quota)
                return True
        self.ended.add(source)
        return False

    def _passed_over(self, docno: str, source: str, rank: int) -> bool:
        """Whether a document cannot be pooled; the reason is then logged."""
        reason, other = self._reason_against(docno)
        if reason is None:
            return False
        self.replacements.append(
            Replacement(self.target.topic, len(self.slots) + 1, source, rank, docno, reason, other)
        )
        return True

    def _reason_against(self, docno: str) -> tuple[Reason | None, str]:
        other = self._contents.get(self._content(docno))
        if docno in self.docnos:
            return "pooled", docno
        if other is not None:
            return ("target" if other == self.target.docno else "content"), other
        return self._rules.reason_against(docno), ""

    def _place(
        self, docno: str, source: str, rank: int, *, quota: str = "", inclusion: float = 1.0
    ) -> None:
        self.slots.append(
            Slot(self.target.topic, len(self.slots) + 1, docno, source, rank, quota, inclusion)
        )
        self.docnos[docno] = None
        self._contents[self._content(docno)] = docno

    def _drawn(self, n: int, n_rest: int, barred: Collection[str]) -> list[str]:
        frame, drawn = self._rules.frame, dict[str, None]()
        if n_rest > len(frame) / 2 and n < n_rest / 2:
            for _ in range(MOST_REJECTED * n):
                docno = frame[int(self._rng.integers(len(frame)))]
                if self._content(docno) not in barred:
                    drawn[docno] = None
                if len(drawn) == n:
                    return list(drawn)
        rest = [each for each in frame if self._content(each) not in barred]
        return [rest[each] for each in self._rng.permutation(len(rest))[:n]]
