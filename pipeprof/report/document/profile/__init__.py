"""Build the document of one run, and its first screen."""
