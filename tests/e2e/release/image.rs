//! The image, really built: the last stage of the Dockerfile by buildah, upon a base of Debian's packages instead of
//! the registry's, then unpacked and run as the image says, with a root that nobody can write to.

use assert_cmd::Command;
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use testkit::programs::image;

/// Builds in a namespace of its own, so it needs no root. Images of the local store alone are taken.
const BUILD: &str = r#"
set -eu
cd "$1"
buildah() { command buildah --root "$PWD/store" --runroot "$PWD/run" --storage-driver vfs "$@"; }
policy="--signature-policy $PWD/policy.json"
container=$(buildah from scratch)
buildah copy --quiet "$container" "$2" /
buildah commit --quiet --rm $policy "$container" localhost/base
buildah build --quiet --pull-never --isolation chroot $policy --build-arg BASE=localhost/base \
    --build-context build=program --tag localhost/nodewhy --file Dockerfile context
buildah push --quiet $policy localhost/nodewhy oci:image
rm -rf store run
"#;

/// Runs what is left of the arguments in the folder $1 as its root, with the folder $2 at /home.
const RUN: &str = r#"
set -eu
mount --bind "$1" "$1"
mount --bind "$2" "$1/home"
mount -o remount,bind,ro "$1"
if touch "$1/written" 2>/dev/null; then echo "the root can be written to"; exit 9; fi
root=$1
shift 2
exec chroot "$root" "$@"
"#;

fn namespace(arguments: &[&str], script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--mount"]).args(arguments).args(["sh", "-c", script, "sh"]);
    command
}

/// The last stage, as it is.
fn last_stage() -> String {
    let dockerfile = super::read("Dockerfile");
    let at = dockerfile.rfind("\nFROM ").expect("a stage");
    format!("ARG BASE{}", &dockerfile[at..])
}

/// What a digest stands for in the layout of an image.
fn blob(image: &Path, descriptor: &Value) -> PathBuf {
    let digest = descriptor["digest"].as_str().expect("a digest").replace(':', "/");
    image.join("blobs").join(digest)
}

fn parsed(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).expect("a file")).expect("JSON")
}

#[test]
fn the_image_runs_as_a_user_that_owns_nothing_upon_a_root_that_is_read_only() {
    let base = image::base();
    let folder = tempfile::tempdir_in(testkit::scratch()).expect("a folder");
    let at = |path: &str| folder.path().join(path);
    for name in ["program", "context", "root"] {
        fs::create_dir(at(name)).expect("a folder");
    }
    // Without the names of its functions it is a third as large.
    Command::new("strip").arg("-o").arg(at("program/nodewhy")).arg(testkit::nodewhy()).assert().success();
    fs::write(at("Dockerfile"), last_stage()).expect("written");
    let anything = json!({"default": [{"type": "insecureAcceptAnything"}]});
    fs::write(at("policy.json"), anything.to_string()).expect("written");
    let mut build = namespace(&["--map-root-user"], BUILD);
    build.arg(folder.path()).arg(base).env("HOME", folder.path()).envs(image::buildah()).assert().success();

    let image = at("image");
    let manifest = parsed(&blob(&image, &parsed(&image.join("index.json"))["manifests"][0]));
    for layer in manifest["layers"].as_array().expect("layers") {
        let file = blob(&image, layer);
        Command::new("tar").arg("-xzf").arg(file).arg("-C").arg(at("root")).arg("--no-same-owner").assert().success();
    }
    let said = &parsed(&blob(&image, &manifest["config"]))["config"];
    assert_eq!(said["Entrypoint"], json!(["/nodewhy"]), "{said:#}");
    assert_eq!(said["Cmd"], json!(["run"]), "{said:#}");
    assert_eq!(said["User"], "65532:65532", "{said:#}");

    let run = |arguments: &[&str]| {
        // The user namespace is what gives the shell the right to mount.
        let as_user = ["--map-user=65532", "--map-group=65532", "--keep-caps"];
        let case = testkit::project().join("tests/cases/06-node-label-refused-by-kubelet");
        let mut command = namespace(&as_user, RUN);
        command.arg(at("root")).arg(case).arg("/nodewhy").args(arguments);
        command
    };
    run(&["version"]).assert().success();
    let verdict = run(&["diagnose", "-f", "/home/cluster.yaml"]).assert().success();
    let verdict = String::from_utf8_lossy(&verdict.get_output().stdout).into_owned();
    assert!(verdict.starts_with("KubeletRefusesLabels (Certain)"), "{verdict}");
}
