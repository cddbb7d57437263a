"""Recommenders that take critiques of what they showed."""

from simulation.recommenders.protocol import Recommender
from simulation.recommenders.untrained import EmbeddingRecommender, RandomRecommender

__all__ = ["EmbeddingRecommender", "RandomRecommender", "Recommender"]
