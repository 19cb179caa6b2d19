"""A document as GitHub's Markdown."""
