"""Running jobs: the loop that leases, executes and settles, and the plain worker."""
