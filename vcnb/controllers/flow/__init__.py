"""JobFlows and JobTemplates: graphs of Jobs that start when what they wait for has ended, as Volcano runs them and beyond."""

from __future__ import annotations

from vcnb.controllers.flow.controller import FlowController
from vcnb.controllers.flow.convert import job_from_template, template_from_job
from vcnb.controllers.flow.templates import TemplateController

__all__ = ["FlowController", "TemplateController", "job_from_template", "template_from_job"]
