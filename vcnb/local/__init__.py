"""How pods run on one machine: the gang scheduler and the node agent."""
