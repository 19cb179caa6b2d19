"""Render a document as a fragment of HTML for a notebook cell."""
