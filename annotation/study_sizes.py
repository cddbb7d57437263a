"""The type of a study that comes from `counted()`; imported by the type checker alone."""

from __future__ import annotations

from typing import TypeAlias, TypedDict

from django_stubs_ext import WithAnnotations

from annotation.models import Study


class Sizes(TypedDict):
    n_items: int
    n_submissions: int
    n_judgments: int


CountedStudy: TypeAlias = WithAnnotations[Study, Sizes]
