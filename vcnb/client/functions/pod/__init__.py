"""What runs in the pod: modules that travel as text in the payload and need Python and nothing of vcnb.

``supervise`` is the main program: it runs one of the others, ``call`` or ``notebook``, in a child process, once or several
times, and writes what came of it into the pod's log. They keep to what any Python 3.8 can read, so that a pod with another
Python than the submitter's can still say so.
"""
