"""Models, tasks, suites, runs and so on as plain rows, for `list`, `show`, `cite` and the docs."""
