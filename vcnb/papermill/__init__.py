"""The papermill engine ``vcnb``: ``papermill in.ipynb out.ipynb --engine vcnb``.

The notebook runs as a job of the cluster that ``VCNB_CLUSTER`` names (default: the default one), or, with
``vcnb_where=here``, in a kernel of this process. Both tell the truth about what ran: see ``engine``.
"""
