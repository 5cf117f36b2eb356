//! buildah, and what it builds the image upon.

use std::path::{Path, PathBuf};
use std::{env, fs};

use crate::debian;
use crate::go::once;

const NO_BUILDAH: &str = "the tests take buildah from the PATH, or from Debian's package of that name";
/// What distroless's `static` has, and what a program needs that is not linked statically, as that of the tests is.
const BASE: [&str; 5] = ["base-files", "ca-certificates", "tzdata", "libc6", "libgcc-s1"];

/// buildah and its libraries.
pub fn buildah() -> Vec<(&'static str, String)> {
    let path = env::var("PATH").unwrap_or_default();
    if env::split_paths(&path).any(|folder| folder.join("buildah").is_file()) {
        return Vec::new();
    }
    let unpack = |folder: &Path| debian::unpack_with_dependencies(&["buildah"], NO_BUILDAH, folder);
    let folder = once("buildah", "Debian's package", unpack);
    let libraries: Vec<String> = fs::read_dir(folder.join("usr/lib"))
        .expect("it has libraries")
        .map(|entry| entry.expect("an entry").path().display().to_string())
        .collect();
    let path = format!("{}:{path}", folder.join("usr/bin").display());
    vec![("PATH", path), ("LD_LIBRARY_PATH", libraries.join(":"))]
}

/// What the image stands upon.
pub fn base() -> PathBuf {
    once("image-base", "Debian's packages", |folder| {
        debian::unpack(&BASE, "the base of the image is made of Debian's packages", folder);
    })
}
