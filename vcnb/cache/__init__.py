"""The cache: datasets of any fsspec source held in local pages, filled and emptied by durable, restartable jobs.

``protocol`` is what the two sides of it say to each other; ``jobs``, ``stores`` and ``coordinator`` are the side that
decides what is to be done; ``pages``, ``worker`` and ``filesystem`` the side that holds and serves the bytes.
"""
