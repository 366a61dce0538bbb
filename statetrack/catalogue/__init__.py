"""Everything there is, as plain rows: what `list`, `show` and `cite` print and the docs show."""
