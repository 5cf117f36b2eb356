//! bash runs the scripts whose words we claim to know.

use std::{collections::BTreeMap, fs, process::Command};

use readers::userdata::{
    shell::{self, Runs},
    traced::Traced,
};

use testkit::compare::compare;
use testkit::scripts::scripts;

/// What each command of a script was given, by the number that is its first argument: its words, then its
/// here-document. A command that is run more than once has no single answer.
type Run = BTreeMap<usize, Option<Vec<String>>>;

#[derive(Debug, Clone, PartialEq, Eq)]
struct Outcome {
    run: Run,
    /// bash found a quote that nothing closes.
    open_quote: bool,
    /// bash found another mistake, at which it stops: we see no other, and claim nothing.
    broken: bool,
}

/// `w` and `d` write their words to the real standard output, `d` its input too. There is no other program: PATH is
/// empty.
const DRIVER: &str = r#"
exec 9>&1; PATH=; unset CDPATH
w() { printf '%s\x1f' "$@" $'\x1e' >&9; }
d() { local body; IFS= read -r -d '' body; w "$@" "$body"; }
count=$1
for ((number = 0; number < count; number++)); do
    ( cd work; trap wait EXIT; . ../$number.sh ) 2>$number.err >/dev/null </dev/null
    printf '\x1d' >&9
done
"#;

fn answers(scripts: &[String]) -> Vec<Outcome> {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::create_dir(folder.path().join("work")).unwrap();
    for (number, script) in scripts.iter().enumerate() {
        // cloud-init and Karpenter take the carriage returns out.
        fs::write(folder.path().join(format!("{number}.sh")), script.replace("\r\n", "\n")).unwrap();
    }
    let count = scripts.len().to_string();
    let output = Command::new("bash")
        .args(["--norc", "-c", DRIVER, "bash", &count])
        .current_dir(&folder)
        .env("LC_ALL", "C.UTF-8")
        .output();
    let output = output.expect("the tests compare with bash: install it");
    let outcome = |(number, text): (usize, &str)| {
        let mut run = Run::new();
        for words in text.split_terminator("\x1e\x1f") {
            let mut words = words.split_terminator('\x1f').map(str::to_owned);
            // A quote may have swallowed the number.
            let Some(command) = words.next().and_then(|number| number.parse().ok()) else { continue };
            let words = Some(words.collect());
            run.entry(command).and_modify(|known| *known = None).or_insert(words);
        }
        let errors = fs::read(folder.path().join(format!("{number}.err"))).unwrap();
        let errors = String::from_utf8_lossy(&errors);
        let open_quote = ["`\'\'", "`\"\'"]
            .iter()
            .any(|quote| errors.contains(&format!("unexpected EOF while looking for matching {quote}")));
        Outcome {
            run,
            open_quote,
            broken: ["syntax error", "bad substitution"].iter().any(|mistake| errors.contains(mistake))
                || errors.contains("unexpected EOF") && !open_quote,
        }
    };
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator('\x1d').enumerate().map(outcome).collect()
}

/// What bash must have done where we are right: its own outcome with our claims laid over it.
fn claimed(script: &str, theirs: &Outcome) -> Option<Outcome> {
    let read = shell::read(&Traced::written_at(script, 0));
    if theirs.broken {
        return None;
    }
    // A script that guards itself (`… || exit 1`) is taken to get past its guards.
    if read.commands.iter().any(|command| {
        command.runs == Runs::Perhaps && command.words.first().is_some_and(|word| word.text.as_str() == "exit")
    }) {
        return None;
    }
    let mut outcome = theirs.clone();
    outcome.open_quote |= read.open_quote.is_some();
    for command in &read.commands {
        let mut words = command.words.iter();
        if !words.next().is_some_and(|word| matches!(word.text.as_str(), "w" | "d")) {
            continue;
        }
        let Some(number) = words.next().and_then(|word| word.text.as_str().parse().ok()) else { continue };
        match command.runs {
            Runs::Always if command.words.iter().chain(&command.document).all(|word| word.exact) => {
                let mut words: Vec<String> = words.map(|word| word.text.as_str().to_owned()).collect();
                if command.words.first().is_some_and(|word| word.text.as_str() == "d") {
                    words.push(command.document.as_ref().map_or("", |document| document.text.as_str()).to_owned());
                }
                outcome.run.insert(number, Some(words));
            }
            Runs::AfterExit | Runs::SyntaxError => drop(outcome.run.remove(&number)),
            Runs::Always | Runs::Perhaps => {}
        }
    }
    Some(outcome)
}

#[test]
fn bash_gives_its_commands_the_words_that_we_read() {
    let scripts = scripts(4_000);
    let theirs = answers(&scripts);
    let sure = |script: &String, theirs: &Outcome| claimed(script, theirs).filter(|claimed| !claimed.run.is_empty());
    compare(&scripts, &theirs, sure).agrees(1_500);
    compare(&scripts, &theirs, |script, theirs| claimed(&script.replace('\'', "\""), theirs)).finds_the_mistake();
    compare(&scripts, &theirs, |script, theirs| claimed(&script.replace("$X", "$Y"), theirs)).finds_the_mistake();
}
