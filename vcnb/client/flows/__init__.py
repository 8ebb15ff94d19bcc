"""Flows in Python: ``vcnb.Flow`` puts one together, ``FlowHandle`` (``vcnb.client.flow``) is one that was submitted."""
