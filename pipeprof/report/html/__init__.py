"""Render a document as one page for a browser: self-contained, for screen, phone or paper."""
