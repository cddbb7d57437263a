"""Pages of experiments with simulated users, and of recommenders that are trained here."""
