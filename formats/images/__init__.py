"""Folders of images: a file a row, whose class is its folder. They are read, and not written."""
