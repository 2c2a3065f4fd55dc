"""Runs through a real Prefect server and with real trackers, on the simulation's scripted engine."""
