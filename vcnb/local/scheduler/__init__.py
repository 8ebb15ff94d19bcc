"""The gang scheduler of an embedded cluster: admits PodGroups, binds their pods, and says why something waits.

``schedule`` is the pure core, ``Scheduler`` the shell that follows a store, ``explain`` the reasons in numbers.
"""

from vcnb.local.scheduler.conf import Action, Conf
from vcnb.local.scheduler.explain import Code, Fact, explain
from vcnb.local.scheduler.outcome import Outcome
from vcnb.local.scheduler.schedule import schedule
from vcnb.local.scheduler.scheduler import Scheduler
from vcnb.local.scheduler.values import Snapshot

__all__ = ["Action", "Code", "Conf", "Fact", "Outcome", "Scheduler", "Snapshot", "explain", "schedule"]
