"""The charts of a page, as Vega-Lite: each takes one kind of data of a document."""
