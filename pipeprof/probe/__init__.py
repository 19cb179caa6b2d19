"""Measure what a file system or bucket can give, without a format or a loader in between."""
