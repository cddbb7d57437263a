from simulation.recommenders.protocol import EmbeddingRecommender, RandomRecommender, Recommender

__all__ = ["EmbeddingRecommender", "RandomRecommender", "Recommender"]
