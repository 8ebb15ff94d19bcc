"""What is allowed: defaults and rules per kind, as pure functions of the object and what the cluster already holds.

``review`` answers for one request (create, update or delete): the object as it would be stored, every problem, and what
is allowed but surely not meant. ``admit`` raises instead. The rules are those of Volcano's schema and webhooks; their
ids (J4, P5, Q13 ...) stand beside the code that keeps them. Where vcnb refuses more than Volcano does is listed in
docs/differences-admission.md.

- ``review``      one request: dispatch by kind, the structural check, metadata
- ``defaults``    what is filled in (M1-M10, D1-D3, the defaults of the schema), ``serial`` how tasks are written back
- ``job``, ``job_update``, ``policies``, ``volumes``, ``plugins``, ``template``, ``graph``   the rules of a Job
- ``jobtemplate``, ``cronjob``, ``schedule``   a Job that is made later, and when
- ``jobflow``, ``flow_nodes``, ``flow_expressions``, ``expressions``, ``jobpatch``   job flows
- ``queue``, ``queue_tree``, ``podgroup``, ``pod``, ``command``   the rest
"""

from vcnb.admission.findings import Rules
from vcnb.admission.review import Review, admit, review
from vcnb.admission.world import World

__all__ = ["Review", "Rules", "World", "admit", "review"]
