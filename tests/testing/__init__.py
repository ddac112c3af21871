"""What Redrive offers to the tests of others, tried as they would use it."""
