"""Learner and generator behind one protocol; the only part of papo that loads torch, and only inside its ranks."""
