"""The fork server that starts containers, and the shim that stays with each one. A program of its own.

The node agent runs it with ``python -I -S`` (see launch.py) as the top-level package ``launcher``: nothing but the
standard library is imported, not even the rest of vcnb, so that a fork costs about a millisecond. It reads requests from one socket (a 4-byte length, then JSON) and forks a *shim* for each. The shim is the
container's parent: it leads a session of its own, outlives the agent and this server, and leaves two files in the
directory of the attempt:

- ``started.json``, written before the container's program runs. It is created exactly once: whoever finds an attempt
  without it may create it instead (``abandoned``), and then the shim starts nothing.
- ``exit.json``, written when the container has ended and everything it left behind is dead.

The end of the shim is therefore the end of the container; the agent watches it through a pidfd, its own children or not.
A shim obeys two signals: SIGTERM is passed to the container's process group, SIGUSR1 kills the container. A shim that is
killed itself takes the container with it and leaves no ``exit.json``.

A request with a ``room`` runs inside a bubblewrap sandbox: bwrap builds the namespaces around a ``cat`` that waits for
the shim's end, the shim enters them with setns(2), and the program becomes its direct child. So the exit status is the
program's own, not the 128+n into which bwrap folds a signal.

A request with ``enter`` joins the namespaces of a running room (probes, preStop hooks) and leaves no files.
"""
