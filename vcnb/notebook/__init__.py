"""What a notebook sees: magics, rich reprs, live views."""
