"""The parts that REST and HTTP APIs share."""
