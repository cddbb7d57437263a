"""Recommenders that are trained on dialogues with a critic: GRU-SL, GRU-RL and EGE, in PyTorch."""
