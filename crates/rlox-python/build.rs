//! Linker settings and the facts about this build that `build_info()` reports.

use std::{env, process::Command};

fn main() {
    println!("cargo:rerun-if-changed=build.rs");

    // rust-lld packs segments so that file offsets and addresses differ, and the unwinders of
    // sampling profilers then see one frame per stack. Separate segments keep stacks whole.
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,separate-loadable-segments");
    }

    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .map(|out| String::from_utf8_lossy(&out.stdout).trim().to_owned())
        .unwrap_or_else(|_| "unknown".into());
    println!("cargo:rustc-env=RLOX_RUSTC={version}");
    println!(
        "cargo:rustc-env=RLOX_PROFILE={}",
        env::var("PROFILE").unwrap_or_else(|_| "unknown".into())
    );
}
