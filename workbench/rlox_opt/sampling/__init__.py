"""Where a program's time goes: samplers, the layers of code, and reports made of the samples."""
