"""Real processes that are really killed, stopped, locked out and run out of space."""
