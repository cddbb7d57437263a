"""How far a collection may be used for systems that were not pooled."""
