"""The main job in short: it learns, it is the same twice, and a summed reward collapses where PAPO's does not."""
