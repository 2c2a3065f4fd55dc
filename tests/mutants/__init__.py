"""Faults put into the method on purpose: what the tests must find."""
