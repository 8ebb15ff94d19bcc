"""vcnb: gang-scheduled Volcano Jobs, job flows and dataset caching, submitted and watched from notebooks."""

__version__ = "0.1.0"
