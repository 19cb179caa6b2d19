"""Render a document as Markdown, as GitHub shows it."""
