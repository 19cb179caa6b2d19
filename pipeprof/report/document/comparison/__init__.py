"""Runs against each other: a document of what differs, and how sure that is."""
