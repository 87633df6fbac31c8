"""Members and their welcome."""
