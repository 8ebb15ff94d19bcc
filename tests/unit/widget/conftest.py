"""Widgets without a kernel: what they send is kept, and nothing stays open after a test."""

from typing import ClassVar

import comm
import ipywidgets.widgets.widget as widgets
import pytest

import vcnb
from vcnb.notebook.painter import PAINTER


class RecordingComm(comm.base_comm.BaseComm):
    """A comm whose messages can be looked at."""

    opened: ClassVar[list] = []

    def __init__(self, **kwargs):
        self.messages = []
        self.opened.append(self)
        super().__init__(**kwargs)

    def publish_msg(self, msg_type, data=None, metadata=None, buffers=None, **keys):
        self.messages.append((msg_type, data or {}))


@pytest.fixture
def comms(monkeypatch):
    """All comms that were opened, oldest first."""
    RecordingComm.opened = []
    monkeypatch.setattr(comm, "create_comm", RecordingComm)
    yield RecordingComm.opened
    for widget in list(widgets._instances.values()):
        widget.close()
    assert not widgets._instances


@pytest.fixture
def cluster(comms):
    """A simulated cluster on a virtual clock."""
    with vcnb.connect("memory://?runtime=simulated&clock=virtual") as made:
        yield made


@pytest.fixture
def painted():
    """Wait until everything that is out of date was painted."""

    def wait(view):
        PAINTER.call(lambda: None)
        PAINTER.call(view.paint)
        return view

    return wait
