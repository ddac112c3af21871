"""Real programs that tests talk to, started when a test first asks for them and stopped with the run."""
