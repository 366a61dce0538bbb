"""Pictures of tasks: state diagrams, Cayley graphs and transition tables; no torch."""
