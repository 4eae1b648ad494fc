"""Where time goes: samplers, layers, and what is made of their samples."""
