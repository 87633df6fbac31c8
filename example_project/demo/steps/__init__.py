"""The steps of the demo, each a function that acts on the stage and checks."""
