"""The formats of tables and reports: each file is one, named after it."""
