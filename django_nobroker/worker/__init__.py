"""Running jobs of the embedded log: the loop that leases, executes and settles."""
