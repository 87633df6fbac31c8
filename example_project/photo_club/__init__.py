"""The photo club: settings, addresses, and the pages of no single part."""
