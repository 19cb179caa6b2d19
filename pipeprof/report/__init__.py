"""Reports: each renders a saved profile, sweep or comparison and measures nothing itself."""
