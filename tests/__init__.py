"""The tests, by kind and then as the tree; a package, so that no other distribution's `tests` can take its name."""
