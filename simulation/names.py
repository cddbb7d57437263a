"""Catalogues, users and recommenders as a command line names them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from annotation.readers.report import ReadingReport
from simulation.catalogue import Catalogue
from simulation.catalogue_files import (
    read_fashion_iq,
    read_folder,
    read_names,
    read_shoes,
    read_sprite,
)
from simulation.critics import CaptionCritic, Critic, PairedCaptionCritic, critic_of, read_captions
from simulation.drawn_products import drawn_catalogue, stand_in_catalogue
from simulation.recommenders import EmbeddingRecommender, RandomRecommender, Recommender
from simulation.users import CHOICES, MetaUser, Mode, of_mode, p_switch_of_effect

CATALOGUES = (
    "FOLDER with ids.txt and embeddings.npy, drawn:5000, sprite:FILE, shoes:NAMES,EMBEDDINGS, "
    "fashioniq:SPLIT,EMBEDDINGS, stand-in:NAMES"
)
USERS = (
    "base, tol:TOLERANCE, prob:TOLERANCE:P, prob:TOLERANCE:d=EFFECT; with choices of its own "
    "behind commas, as in prob:3:0.75,mode=released,turn_base=1,sticky=yes"
)
RECOMMENDERS = "random, embedding, embedding:RECENCY, or the FILE of a trained one"


def named_catalogue(name: str, *, seed: int = 0) -> Catalogue:
    """The catalogue of a name, or a ValueError that says which there are."""
    kind, _, rest = name.partition(":")
    files = [Path(part) for part in rest.split(",")]
    readers: dict[tuple[str, int], Callable[..., Catalogue]] = {
        ("sprite", 1): read_sprite,
        ("shoes", 2): read_shoes,
        ("fashioniq", 2): read_fashion_iq,
        ("stand-in", 1): lambda path: stand_in_catalogue(read_names(path), seed=seed),
    }
    if kind == "drawn" and rest.isdecimal():
        return drawn_catalogue(int(rest), seed=seed)
    if rest and (reader := readers.get((kind, len(files)))):
        return reader(*files)
    if Path(name).is_dir():
        return read_folder(Path(name))
    raise ValueError(f"catalogue must be one of {CATALOGUES}, not {name!r}")


def named_user(name: str, *, mode: Mode = "paper", **choices: Any) -> MetaUser:
    """The user of a name, in a mode, with other choices than the mode's where given.

    What the name says itself goes before the mode and the choices.
    """
    spec, *own = name.split(",")
    try:
        named = dict(_choice(text) for text in own)
        user = _user_of_spec(spec, named.pop("mode", mode))
        return replace(user, **choices | named)
    except ValueError as error:
        raise ValueError(f"user {name!r}: {error}") from None


def _user_of_spec(spec: str, mode: Mode) -> MetaUser:
    kind, *numbers = spec.split(":")
    if kind == "base" and not numbers:
        return of_mode("base", mode)
    if kind == "tol" and len(numbers) == 1:
        return replace(of_mode("tol", mode), tolerance=int(numbers[0]))
    if kind == "prob" and len(numbers) == 2:
        p_switch = _p_switch(numbers[1])
        return replace(of_mode("prob", mode), tolerance=int(numbers[0]), p_switch=p_switch)
    raise ValueError(f"it must be one of {USERS}")


def _choice(text: str) -> tuple[str, Any]:
    """A choice by name, its value of the field's type."""
    name, _, value = (part.strip() for part in text.partition("="))
    if name in ("sticky", "target_among"):
        if value not in ("yes", "no"):
            raise ValueError(f"{name} must be yes or no, not {value!r}")
        return name, value == "yes"
    if name == "turn_base":
        return name, int(value)
    if name == "leave_hazard":
        return name, float(value)
    if name in ("mode", *CHOICES):
        return name, value
    allowed = ", ".join(("mode", "leave_hazard", *CHOICES))
    raise ValueError(f"{name!r} is no choice; there are {allowed}")


def _p_switch(text: str) -> float:
    if text.startswith("d="):
        return p_switch_of_effect(float(text.removeprefix("d=")))
    return float(text)


def named_recommender(name: str, catalogue: Catalogue, critic: Critic) -> Recommender:
    """The recommender of a name; one that was trained is named by its file.

    It is the same whatever the seeds of its dialogues.
    """
    kind, _, recency = name.partition(":")
    if name == "random":
        return RandomRecommender(catalogue)
    if kind == "embedding":
        try:
            weight = float(recency or 0.5)
        except ValueError:
            raise ValueError(f"recommender {name!r}: {recency!r} is not a number") from None
        recommender = EmbeddingRecommender(catalogue, critic, recency=weight)
        recommender.name = name
        return recommender
    if Path(name).is_file():
        # Torch, which takes seconds, is for those who name a trained one.
        from simulation.recommenders.trained.checkpoints import read_recommender

        return read_recommender(Path(name), catalogue, critic)
    raise ValueError(f"recommender must be one of {RECOMMENDERS}, not {name!r}")


def named_critic(
    catalogue: Catalogue, captions: Path | None = None, *, report: ReadingReport | None = None
) -> Critic:
    """The critic that suits the catalogue, in people's words where a file of captions is named."""
    critic = critic_of(catalogue)
    if captions is None:
        return critic
    rows = read_captions(captions, report=report)
    if catalogue.attributes is None:
        return PairedCaptionCritic(catalogue, rows, source=captions.name)
    return CaptionCritic(critic, [row.text for row in rows], source=captions.name)
