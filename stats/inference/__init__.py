"""What may be concluded: tests and intervals for judges, systems and the numbers themselves."""
