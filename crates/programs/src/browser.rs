//! Chromium, and axe-core, which finds what keeps people from reading a page.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::debian;
use crate::go::once;

const NO_CHROMIUM: &str = "the tests take chromium-headless-shell from Debian's package of that name";
/// What it draws with: one font for text, one for code, whatever the machine has.
const PACKAGES: [&str; 3] = ["chromium-headless-shell", "fonts-roboto-unhinted", "fonts-dejavu-core"];

/// Chromium without a desktop has no font of the system: it asks for any.
const FONTS: &str = r#"<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>FOLDER/usr/share/fonts</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>FOLDER/fontcache</cachedir>
  <match>
    <test name="family" compare="not_eq"><string>DejaVu Sans Mono</string></test>
    <edit name="family" mode="append"><string>Roboto</string></edit>
  </match>
</fontconfig>
"#;

/// Chromium's folder, with its libraries and fonts.
pub fn chromium() -> PathBuf {
    once("chromium", FONTS, |folder| {
        debian::unpack_with_dependencies(&PACKAGES, NO_CHROMIUM, folder);
        fs::write(folder.join("fonts.conf"), FONTS.replace("FOLDER", &folder.display().to_string()))
            .expect("target is writable");
    })
}

/// axe-core, which finds what keeps people from reading a page: as a package of Python's ships it, since pip is there
/// for moto and npm is not.
pub fn axe() -> String {
    const REQUIREMENT: &str = "axe-playwright-python==0.1.8 \
        --hash=sha256:fdd263c998388f1a8e67cad02677e612d946248bd44d163be5e8650ea31f95f8\n";
    let folder = once("axe", REQUIREMENT, |folder| {
        let list = folder.join("requirements.txt");
        fs::write(&list, REQUIREMENT).expect("target is writable");
        let mut pip = Command::new("python3");
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--upgrade"]);
        pip.args(["--require-hashes", "--only-binary", ":all:", "-r"]).arg(list).arg("--target").arg(folder);
        let output = pip.output().expect("the tests of the page need python3 with pip");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    });
    fs::read_to_string(folder.join("axe_playwright_python/axe.min.js")).expect("the package has it")
}
