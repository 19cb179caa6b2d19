"""A document as a fragment of HTML for a notebook's output cell."""
