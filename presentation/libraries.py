"""Libraries that are slow to import, imported when one of their names is first used."""

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import altair as alt
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from rest_framework import serializers
else:

    class _LazyModule(ModuleType):
        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module(self.__name__), name)
            setattr(self, name, value)
            return value

    alt = _LazyModule("altair")
    np = _LazyModule("numpy")
    pd = _LazyModule("pandas")
    pa = _LazyModule("pyarrow")
    pc = _LazyModule("pyarrow.compute")
    pq = _LazyModule("pyarrow.parquet")
    serializers = _LazyModule("rest_framework.serializers")

__all__ = ["alt", "np", "pa", "pc", "pd", "pq", "serializers"]
