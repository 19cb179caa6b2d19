"""Draw the charts of a page in Vega-Lite. Each module takes some kinds of chart data."""
