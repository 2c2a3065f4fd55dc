"""Composition: the flows, one iteration that reads aloud, and the command line. No math, no IO, no torch."""
