"""What a file system or bucket can give, asked with nothing in between: no format, no loader."""
