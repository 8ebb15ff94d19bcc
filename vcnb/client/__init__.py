"""The Python API that people use: connect, Cluster, and the handles of objects."""
