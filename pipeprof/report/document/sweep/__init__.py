"""Build the document of a sweep, and its first screen."""
