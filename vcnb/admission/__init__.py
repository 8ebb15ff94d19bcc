"""What is allowed: defaults and validation of every kind, as pure functions."""
