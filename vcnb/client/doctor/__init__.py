"""``vcnb doctor`` and ``cluster.doctor()``: looks at everything that a cluster needs, and says what to do about the rest."""

from vcnb.client.doctor.examination import examine
from vcnb.client.doctor.report import Finding, Report

__all__ = ["Finding", "Report", "examine"]
