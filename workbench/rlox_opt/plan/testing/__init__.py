"""The parts of `rlox-opt test`: agreement of twins, planted bugs, every build."""
