"""Pure values and decisions: nothing here waits, asks the time, rolls dice or speaks SQL."""
