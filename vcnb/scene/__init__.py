"""What is shown: one immutable snapshot of objects, rendered as text, HTML and SVG by pure functions."""
