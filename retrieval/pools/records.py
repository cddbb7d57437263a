from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Self

from presentation.numbers import plain_values

Method = Literal["quotas", "depth", "take"]
Reason = Literal["target", "pooled", "content", "cap", "excluded", "unknown", "picture"]
# The source of what is drawn from the rest of the catalogue.
UNIFORM = "uniform"
REASONS: dict[Reason, str] = {
    "target": "it is the target, or looks the same",
    "pooled": "another slot has it",
    "content": "another slot has the same picture or text",
    "cap": "it stands in as many pools as the cap allows",
    "excluded": "it is excluded",
    "unknown": "the catalogue does not have it",
    "picture": "its picture cannot be shown",
}


@dataclass(frozen=True)
class Target:
    """A topic, and the document that it is about; empty where the topic is no document."""

    topic: str
    docno: str = ""


@dataclass(frozen=True, kw_only=True)
class PoolPlan:
    """How a pool is made; one of `quotas`, `depth` and `take`.

    Attributes
    ----------
    quotas : tuple of (source, n)
        Each source fills as many slots, one at a time in turns, walking down its list past what
        cannot be pooled. Of a source whose list ends, the next one fills the slots.
    depth : int
        The union of the first ranks of all sources.
    take : int
        The first documents by reciprocal rank fusion: the sum of 1 / (`fusion_constant` + rank)
        over the lists that have them down to rank `fusion_depth`.
    uniform : int
        Documents drawn for each topic from the rest of the catalogue, each with the same chance.
    cap : int
        Topics for which a document is pooled at most; 0 for no cap. Topics then come in an order
        drawn by the seed.
    seed : int
        Of whose turn is first, of presentation and draws, for each topic by itself.
    """

    quotas: tuple[tuple[str, int], ...] = ()
    depth: int = 0
    take: int = 0
    uniform: int = 0
    cap: int = 0
    fusion_constant: int = 60
    fusion_depth: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if sum(map(bool, (self.quotas, self.depth, self.take))) != 1:
            raise ValueError("plan must have one of quotas, depth and take")
        for name in ("depth", "take", "uniform", "cap", "seed"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        for name in ("fusion_constant", "fusion_depth"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")
        names = [name for name, _ in self.quotas]
        if len(set(names)) < len(names):
            raise ValueError("quotas must name each source once")
        if any(n < 1 for _, n in self.quotas):
            raise ValueError("quotas must be positive")

    @property
    def method(self) -> Method:
        return "quotas" if self.quotas else "depth" if self.depth else "take"

    @property
    def per_topic(self) -> int | None:
        """Candidates that every topic should have; None of a pool by depth."""
        n = self.take or sum(n for _, n in self.quotas)
        return n + self.uniform if n else None

    def record(self) -> dict[str, Any]:
        return asdict(self) | {"quotas": dict(self.quotas), "method": self.method}

    @classmethod
    def of(cls, record: dict[str, Any]) -> Self:
        values = {name: value for name, value in record.items() if name != "method"}
        return cls(**values | {"quotas": tuple(record["quotas"].items())})


@dataclass(frozen=True, slots=True)
class Slot:
    """A candidate of a topic.

    Attributes
    ----------
    slot, position : int
        From 1: the order in which slots were filled, and one drawn at random to present them in.
    source, source_rank : str, int
        Whose list it was taken from, and where it stands there; of a draw, its number.
    quota : str
        Whose quota it fills: another source's where that one's list ended.
    inclusion : float
        The probability that it was pooled given the rest; below 1 of what was drawn.
    also : tuple of (source, rank)
        Where else it is listed.
    """

    topic: str
    slot: int
    docno: str
    source: str
    source_rank: int
    quota: str = ""
    inclusion: float = 1.0
    position: int = 0
    also: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Replacement:
    """A document that a source listed and a slot passed over; `other` is what it resembles."""

    topic: str
    slot: int
    source: str
    source_rank: int
    docno: str
    reason: Reason
    other: str = ""


@dataclass(frozen=True, slots=True)
class DrySource:
    topic: str
    source: str
    quota: int
    n_listed: int
    n_missing: int
    filled_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceFacts:
    name: str
    kind: str
    signature: str


@dataclass(frozen=True)
class Pool:
    targets: tuple[Target, ...]
    slots: tuple[Slot, ...]
    replacements: tuple[Replacement, ...] = ()
    dry: tuple[DrySource, ...] = ()
    plan: PoolPlan | None = None
    sources: tuple[SourceFacts, ...] = ()
    report: dict[str, Any] = field(default_factory=dict)

    def by_topic(self) -> dict[str, list[Slot]]:
        topics: dict[str, list[Slot]] = {target.topic: [] for target in self.targets}
        for slot in self.slots:
            topics[slot.topic].append(slot)
        return topics

    def record(self) -> dict[str, Any]:
        return {
            "plan": self.plan.record() if self.plan else None,
            "sources": [asdict(source) for source in self.sources],
            "report": self.report,
            "targets": [asdict(target) for target in self.targets],
            "slots": _records(self.slots),
            "replacements": _records(self.replacements),
            "dry": _records(self.dry),
        }


def _records(rows: Sequence[Any]) -> list[dict[str, Any]]:
    return [plain_values(asdict(row)) for row in rows]
