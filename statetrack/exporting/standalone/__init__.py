"""Programs that an exported folder gets a copy of; they import torch and NumPy alone."""
