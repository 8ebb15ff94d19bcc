"""Live views without widgets: the last state is always shown, also when the end comes while a state is being painted."""

import pytest

import vcnb
from vcnb.notebook.flowview import FlowLiveView
from vcnb.notebook.live import LiveView
from vcnb.notebook.painter import PAINTER


@pytest.fixture
def cluster():
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


class Display:
    """Stands for IPython's ``display``; something may happen right before an update is sent."""

    def __init__(self):
        self.shown = []
        self.before_update = lambda: None

    def __call__(self, bundle, **_):
        self.shown.append(bundle["text/plain"])
        return self

    def update(self, bundle, **_):
        self.shown.append(bundle["text/plain"])
        happen, self.before_update = self.before_update, lambda: None
        happen()


def painted(view):
    """Paint as long as the view follows, as the painter does for one that is dirty."""
    for _ in range(5):
        if view._stop:
            PAINTER.call(view.paint)


def end(cluster, name):
    for pod in cluster.jobs[name].pods:
        cluster.simulator.succeed(pod)


def test_a_job_that_ends_while_it_is_painted_is_shown_completed(cluster):
    job = cluster.submit(vcnb.Job(name="train", tasks=[vcnb.Task("w", command=["true"])]))
    display = Display()
    view = LiveView(job, display)
    display.before_update = lambda: end(cluster, "train")

    painted(view)

    assert "Completed" in display.shown[-1]
    assert view._stop == []


def test_a_flow_that_ends_while_it_is_painted_is_shown_succeeded(cluster):
    flow = vcnb.Flow("pipeline")
    flow.add("load", vcnb.Job(name="load", tasks=[vcnb.Task("w", command=["true"])]))
    handle = cluster.submit(flow)
    display = Display()
    view = FlowLiveView(handle, display)
    display.before_update = lambda: end(cluster, "pipeline-load")

    painted(view)

    assert "Succeed" in display.shown[-1]
    assert view._stop == []
