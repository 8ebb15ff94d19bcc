"""The Volcano Job controller: a pure core with a thin shell."""
