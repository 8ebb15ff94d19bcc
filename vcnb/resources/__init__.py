"""What exists: kinds, specs, manifests, and views of what a cluster says."""
