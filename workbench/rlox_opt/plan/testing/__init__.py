"""What `rlox-opt test` stands on: agreement of twins, planted bugs, every build."""
