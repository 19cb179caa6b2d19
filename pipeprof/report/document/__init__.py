"""Documents state what a report says, once for every medium; renderers lay them out."""
