"""Photos and their thumbnails."""
