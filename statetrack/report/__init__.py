"""Tables and curves, drawn from rows and run folders; no torch, no models."""
