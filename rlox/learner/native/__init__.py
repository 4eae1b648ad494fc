"""The trainers' inner loops in Rust, for policies and critics that are multilayer perceptrons."""
