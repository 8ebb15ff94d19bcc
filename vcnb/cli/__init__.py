"""The ``vcnb`` command."""
