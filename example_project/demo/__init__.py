"""A guided tour of the site by real processes, checked at every step."""
