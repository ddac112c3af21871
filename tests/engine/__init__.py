"""The engine's verbs on virtual time: nothing here sleeps, and every race is run in the order the test names."""
