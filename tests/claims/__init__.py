"""Every cell of models x shipped tasks: its source, a construction that is run, or an attack."""
