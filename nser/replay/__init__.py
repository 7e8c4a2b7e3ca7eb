"""Which item to replay next, and with what weight: numbers in, slots out."""
