//! Linker settings and the facts about this build that `build_info()` reports.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    // From here and from the laboratory, whose script this is, too: were there no such file, cargo would
    // compile that crate at every build.
    println!("cargo:rerun-if-changed=../rlox-python/build.rs");

    // The same source without this is the library that the laboratory is made of.
    println!("cargo:rustc-cfg=extension");

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
    println!("cargo:rustc-env=RLOX_PROFILE={}", profile());

    // Git notes every checkout and commit in its log; without one the commit stays unknown.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    let commit = git(&["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env=RLOX_COMMIT={commit}");
}

/// The profile's own name: `PROFILE` knows only `debug` and `release`, the output folder
/// `target/<profile>/build/<package>/out` all of them.
fn profile() -> String {
    let out = PathBuf::from(env::var("OUT_DIR").unwrap_or_default());
    out.ancestors()
        .nth(3)
        .and_then(Path::file_name)
        .map_or("unknown".into(), |name| name.to_string_lossy().into_owned())
}

fn git(arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?;
    done.status.success().then(|| text.trim().to_owned())
}
