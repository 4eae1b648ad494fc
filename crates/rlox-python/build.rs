//! Linker settings, and the facts about this build that `build_info()` reports. The laboratory's
//! extension uses this script, too.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    // The path is valid from this crate's folder and from the laboratory's. If the file did not exist,
    // cargo would compile the crate at every build.
    println!("cargo:rerun-if-changed=../rlox-python/build.rs");

    // The crate `rlox-binding` compiles the same source without this setting, as a library for the
    // laboratory.
    println!("cargo:rustc-cfg=extension");

    // rust-lld packs segments so that file offsets and addresses differ. The unwinders of sampling
    // profilers then see only one frame of each stack. With separate segments they see all.
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

    // Git adds a line to this log at every checkout and commit, so cargo runs this script again when
    // HEAD has moved.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={log}");
    }
    let commit = git(&["rev-parse", "HEAD"]).unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env=RLOX_COMMIT={commit}");
}

/// The name of cargo's profile, from the output folder `target/<profile>/build/<package>/out`. The
/// variable `PROFILE` says only `debug` or `release`.
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
