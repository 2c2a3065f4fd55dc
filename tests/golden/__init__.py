"""Numbers that others computed, or that were worked out by hand, with their provenance."""
