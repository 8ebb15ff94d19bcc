"""The gang scheduler of the embedded cluster."""
