"""What membership costs, and whether it is paid."""
