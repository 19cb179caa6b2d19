"""What a report says, once for every medium: a result in, a `Document` out."""
