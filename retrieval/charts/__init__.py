"""Pictures of evaluations."""
