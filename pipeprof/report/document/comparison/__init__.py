"""Build the document that compares runs: what differs, and the confidence in it."""
