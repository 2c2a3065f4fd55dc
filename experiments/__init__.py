"""Experiments: one command each, which trains over seeds and methods and writes figures to docs/experiments."""
