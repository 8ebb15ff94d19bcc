"""The cache on several machines: workers and coordinators as processes, over HTTP and etcd.

secret         the token that they share
wire           what goes over HTTP between them
server         a worker behind HTTP
alluxio        the same worker as Alluxio's clients ask for it
client         a worker somewhere else, as if it were here
members        which workers there are: registered in etcd, watched by coordinators and clients
stale          what was freed while a worker was away
serving        an HTTP server on a port
process        settings, etcd at the start, the end by a signal
home           a worker's directory: name, identity, lock
worker         ``vcnb worker``
coordinator    ``vcnb coordinator``
"""
