"""One run: a document of all that is known of it, and its first screen."""
