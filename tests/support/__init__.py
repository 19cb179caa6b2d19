"""What tests of several rooms need: retries of timed tests, leaks, environment, waiting."""
