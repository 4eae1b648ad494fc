"""How a package is built: by cargo, by a command, as PEP 517 says, or by asv's own commands."""
