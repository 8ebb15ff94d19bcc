"""The dataset cache as people use it: ``cluster.cache`` and the handles of its jobs."""
