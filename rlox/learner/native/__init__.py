"""The trainers' inner loops in Rust, for policies that are multilayer perceptrons."""
