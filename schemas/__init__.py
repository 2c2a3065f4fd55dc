"""Contracts: pandera frame models, the pydantic run config and the records that cross a boundary."""
