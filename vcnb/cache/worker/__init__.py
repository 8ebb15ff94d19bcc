"""The worker: does tasks of coordinators with a page store of its own, and lets its pages be read.

``LocalWorker`` runs in the process that uses it; ``vcnb.cache.remote`` serves one over HTTP.
"""

from vcnb.cache.worker.worker import LocalWorker

__all__ = ["LocalWorker"]
