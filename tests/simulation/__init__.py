"""The whole pipeline on a disk that loses what was not synced, driven by a seed (design: deterministic simulation)."""
