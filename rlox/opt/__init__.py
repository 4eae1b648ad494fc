"""The command line `rlox-opt`: one file per verb."""
