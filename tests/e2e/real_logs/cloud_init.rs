//! cloud-init of Debian's package, with user data that it does not take, or whose scripts fail.

use crate::real_logs::{assert_complete, judge, nodeadm, rows_in, said};
use logs::fact::Trouble;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::thread;
use testkit::control_plane::Process;
use testkit::programs::agents;

/// User data, what is said of it, and the root of it where something is wrong.
struct Case {
    name: &'static str,
    user_data: String,
    says: &'static str,
    wanted: Option<Trouble>,
}

const SCRIPT: &str = "Failed to run module scripts-user";

#[allow(clippy::too_many_lines, reason = "a table")]
fn cases() -> Vec<Case> {
    use Trouble as T;
    let case = |name, user_data: &str, says, trouble| Case {
        name,
        user_data: user_data.to_owned(),
        says,
        wanted: Some(trouble),
    };
    let script =
        |name, lines: &str, says| case(name, &format!("#!/bin/bash\nset -e\n{lines}\n"), says, T::ScriptFailed);
    let config = |name, text: &str, says, trouble| case(name, &format!("#cloud-config\n{text}\n"), says, trouble);
    let part = |name, kind: &str, body: &str, says, trouble| {
        let text = format!(
            "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n--B\nContent-Type: \
             {kind}\n\n{body}\n--B--\n"
        );
        case(name, &text, says, trouble)
    };
    vec![
        script("script", "exit 3", SCRIPT),
        script("command", "nodeadm init", "scripts/part-{part}: line {line}: {command}: command not found"),
        case(
            "interpreter",
            "#!/opt/none/bash\n",
            "[Errno 2] No such file or directory: b'{}/scripts/{script}'",
            T::ScriptFailed,
        ),
        part("no first line", "text/x-shellscript", "exit 0", "Exec format error", T::ScriptFailed),
        case("space", " #!/bin/bash\n", "Exec format error", T::ScriptFailed),
        script(
            "line ends of a file",
            r"printf '#!/bin/bash\r\n' > /run/x; chmod +x /run/x; /run/x",
            "{script}: cannot execute: required file not found",
        ),
        script("name", "curl -sS https://example.invalid", "curl: ({code}) Could not resolve host: {host}"),
        script("host", "curl -sS http://127.0.0.1:1", "curl: ({code}) Failed to connect to {host} port {port}"),
        script(
            "download",
            &format!("curl -sSf http://127.0.0.1:{}/none", nodeadm::serve(nodeadm::Aws::default())),
            "curl: ({code}) The requested URL returned error: {error}",
        ),
        config("runcmd", "runcmd: ['false']", SCRIPT, T::ScriptFailed),
        config("bootcmd", "bootcmd: ['false']", "Failed to run bootcmd module", T::ScriptFailed),
        config("bootcmd of a number", "bootcmd: 5", "Failed to shellify {module}: {error}", T::UserDataRefused),
        config("runcmd of a number", "runcmd: 5", "Running module runcmd ({}) failed", T::UserDataRefused),
        config(
            "file",
            "write_files: [{path: /etc/eks/x, content: x}]",
            "Running module write-files ({}) failed",
            T::ScriptFailed,
        ),
        config("packages", "packages: [nope]", "Failed to install packages: {packages}", T::ScriptFailed),
        config("YAML", "runcmd: [", "Failed loading yaml blob", T::UserDataRefused),
        config("list", "- runcmd", "Failed at merging in cloud config part from {part}", T::UserDataRefused),
        case(
            "boothook",
            "#cloud-boothook\n#!/bin/sh\nexit 3\n",
            "Boothooks script {script} execution error",
            T::ScriptFailed,
        ),
        case("no type", "#/bin/bash\n", "Unhandled non-multipart ({type}) userdata: {begin}", T::UserDataRefused),
        part(
            "another type",
            "text/x-shell",
            "#!/bin/bash",
            "Unhandled unknown content-type (text/{type}) userdata: {begin}",
            T::UserDataRefused,
        ),
        case(
            "template",
            "## template: jinja\n#cloud-config\nruncmd: ['{{ x']\n",
            "Failed calling handler {handler} (",
            T::UserDataRefused,
        ),
        case(
            "part handler",
            "#part-handler\nimport none\n",
            "Failed at registering python file: {file}",
            T::UserDataRefused,
        ),
        case("include", "#include\nhttp://127.0.0.1:1/x\n", "failed stage {stage}", T::BootstrapFailed),
        // What looks wrong, and is not: cloud-init ends such lines itself, and leaves to nodeadm what is nodeadm's.
        Case { name: "line ends", user_data: "#!/bin/bash\r\necho\r\n".to_owned(), says: HEALTHY, wanted: None },
        Case {
            wanted: None,
            ..part("NodeConfig", "application/node.eks.aws", "kind: NodeConfig", HEALTHY, T::UserDataRefused)
        },
    ]
}

/// What it logs when everything went well.
const HEALTHY: &str = "finish: modules-final: SUCCESS";

const NOT_HERE: &[(&str, &str)] = &[
    ("error: can't create transaction lock on {path} ({error})", "rpm says it, and the machine here is Debian's"),
    ("No entry for type '{type}' in /etc/eks/eni-max-pods.txt", "bootstrap.sh of images of 2021 says it"),
    ("No entry for type '{type}' in /etc/eks/eni-max-pods.txt. Will", "bootstrap.sh says it, which asks EC2"),
    ("Failed running {script} [{code}]", "cloud-init up to 20.2 says it, such as that of AL2"),
    (
        "Failed to run module scripts_user
        Running module write_files ({}) failed",
        "cloud-init since 23 says it, which calls its modules so",
    ),
    (
        "[eks-bootstrap] ERROR: Exhausted retries while describing cluster!
        [eks-bootstrap] ERROR: {error}
        ERROR: bootstrap.sh has been removed from AL2023-based EKS AMIs
        Exited with error on line {line}",
        "the scripts of EKS's images are in no registry",
    ),
    (
        "An error occurred ({code}) when calling the DescribeCluster operation{error}
        An error occurred ({code}) when calling the {operation} operation: {error}
        Connect timeout on endpoint URL: \"https://eks.{address}\"
        Connect timeout on endpoint URL: \"{address}\"
        Could not connect to the endpoint URL: \"{address}\"
        Unable to locate credentials",
        "the aws command says it, and there is none here",
    ),
    (
        "Errors during downloading metadata for repository
        Error: Failed to download metadata for repo",
        "dnf says it",
    ),
    ("Could not get lock /var/lib/dpkg/lock", "it would keep everybody else from installing"),
    ("/bin/bash^M: bad interpreter", "bash up to 5.1 says it"),
    ("Can not apply stage {stage}, no datasource found!", "its first stage did not run, and here it does"),
];

/// What it logs goes to a file, and to the screen from warnings on, as in the configuration of its package.
const CONFIG: &str = "
datasource_list: [NoCloud, None]
preserve_hostname: true
cloud_init_modules: [bootcmd, write-files, runcmd]
cloud_final_modules: [package-update-upgrade-install, scripts-user]
log_cfgs:
  - |
    [loggers]
    keys=root,cloudinit
    [handlers]
    keys=screen,file
    [formatters]
    keys=line
    [logger_root]
    level=DEBUG
    handlers=screen,file
    [logger_cloudinit]
    level=DEBUG
    qualname=cloudinit
    handlers=
    propagate=1
    [handler_screen]
    class=StreamHandler
    level=WARNING
    formatter=line
    args=(sys.stderr,)
    [handler_file]
    class=FileHandler
    level=DEBUG
    formatter=line
    args=('FOLDER/cloud-init.log', 'a', 'UTF-8')
    [formatter_line]
    format=%(asctime)s - %(filename)s[%(levelname)s]: %(message)s
datasource: {NoCloud: {seedfrom: 'file://FOLDER/seed/'}}
";

/// It may write to its folder and to nothing else of the machine, whose network it leaves alone.
const BOOT: &str = r#"
for folder in /run /var/lib /var/log; do mount -t tmpfs tmpfs $folder || exit; done
mount --bind "$2" "$2" && mount -o remount,bind,ro / || exit
mkdir -p /var/lib/cloud/data && touch /var/lib/cloud/data/upgraded-network
for stage in 'init --local' 'modules --mode final'; do
    PYTHONPATH="$1/usr/lib/python3/dist-packages" python3 -s "$1/usr/bin/cloud-init" --file "$2/config.yaml" $stage
done
"#;

fn run(packages: &Path, folder: &Path, user_data: &str) -> String {
    let seed = folder.join("seed");
    fs::create_dir_all(&seed).expect("it is ours");
    fs::write(seed.join("meta-data"), "instance-id: i-0a0000000000000b1\ndsmode: local\n").expect("it is ours");
    fs::write(seed.join("user-data"), user_data).expect("it is ours");
    let config = CONFIG.replace("FOLDER", &folder.display().to_string());
    fs::write(folder.join("config.yaml"), config).expect("it is ours");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", BOOT, "sh"]).arg(packages).arg(folder);
    let output = said(Process::spawn(&command, folder.join("output.log")), |_| false);
    fs::read_to_string(folder.join("cloud-init.log")).unwrap_or_default() + &output
}

#[test]
fn what_cloud_init_says_in_trouble_is_known() {
    let (packages, folder) = (agents::cloud_init(), tempfile::TempDir::new().expect("a folder"));
    let cases = cases();
    let (waiting, done) = (Mutex::new(cases.iter()), Mutex::new((Vec::new(), BTreeSet::new())));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(case) = { waiting.lock().expect("nobody panicked").next() } {
                    let log = run(&packages, &folder.path().join(case.name.replace(' ', "-")), &case.user_data);
                    let wrong = if let Some(trouble) = case.wanted {
                        judge(case.name, &log, case.says, Some((trouble, None)))
                    } else {
                        let is_fine = log.contains(case.says) && rows_in(&log).is_empty();
                        (!is_fine).then(|| format!("{}: {:?}\n{log}", case.name, rows_in(&log)))
                    };
                    let mut done = done.lock().expect("nobody panicked");
                    done.0.extend(wrong);
                    done.1.extend(rows_in(&log));
                }
            });
        }
    });
    let (wrong, printed) = done.into_inner().expect("nobody panicked");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_complete("cloud-init", &printed, NOT_HERE);
}
