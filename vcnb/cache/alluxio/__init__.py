"""Client of a real Alluxio Enterprise cluster: its four generations of REST calls behind one ``JobAccess``."""
