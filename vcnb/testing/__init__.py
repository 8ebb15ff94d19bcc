"""A simulated cluster on a virtual clock, for tests of jobs and of controllers."""
