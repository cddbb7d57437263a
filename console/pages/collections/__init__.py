"""Pages of test collections."""
