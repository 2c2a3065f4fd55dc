"""What papo costs: runs of a few iterations that are measured from outside, with their figures in `results`."""
