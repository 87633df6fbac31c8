"""The plain Python face of the engine: queues, jobs and workers without Django."""
