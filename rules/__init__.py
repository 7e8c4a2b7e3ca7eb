"""The language of rules: syntax, parser, printers, checks and the files they live in. Knows no torch."""
