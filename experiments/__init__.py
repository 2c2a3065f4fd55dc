"""Experiments: each one command, which trains over seeds and methods and writes figures and curves to docs/experiments."""
