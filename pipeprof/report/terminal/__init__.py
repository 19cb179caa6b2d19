"""Render a document as lines of text for a terminal, laid out by rich."""
