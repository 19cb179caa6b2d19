"""The report as one page for a browser: self-contained, offline, for a screen, a phone or paper."""
