"""Cutting a completion into segments that a process scorer scores (PRPO), and one score from those of the steps.

A segmentation covers every token exactly once, in order. The union is the list of those that exist.
"""

from papo.segmentation.aggregate import StepAggregator, aggregate_steps, segment_scores
from papo.segmentation.entropy import EntropyPeaks
from papo.segmentation.text import CueWords, Newlines, Pattern

Segmenter = EntropyPeaks | Newlines | CueWords | Pattern

__all__ = [
    "CueWords",
    "EntropyPeaks",
    "Newlines",
    "Pattern",
    "Segmenter",
    "StepAggregator",
    "aggregate_steps",
    "segment_scores",
]
