"""The client's side of a Kubernetes cluster. Loaded only when one is asked for."""
