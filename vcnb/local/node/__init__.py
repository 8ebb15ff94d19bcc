"""The node agent of the embedded cluster and its runtimes."""
