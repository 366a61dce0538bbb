"""The command line: it parses, calls the library, and draws what comes back."""
