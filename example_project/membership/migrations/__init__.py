"""The table of payments."""
