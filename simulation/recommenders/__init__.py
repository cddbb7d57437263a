"""Recommenders that take critiques of what they showed."""

from simulation.recommenders.embedding import EmbeddingRecommender
from simulation.recommenders.protocol import Recommender
from simulation.recommenders.random_order import RandomRecommender

__all__ = ["EmbeddingRecommender", "RandomRecommender", "Recommender"]
