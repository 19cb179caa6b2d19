"""A sweep: a document of all its trials, and its first screen."""
