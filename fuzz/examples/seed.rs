//! Writes the first inputs of the fuzz targets from the project's own cases and pages: `cargo run --example seed`.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    io,
    path::{Path, PathBuf},
};

const READERS_OF_USER_DATA: [&str; 7] =
    ["bottlerocket", "kubelet_flags", "mime", "nodeconfig", "shell", "systemd", "userdata"];

fn main() -> io::Result<()> {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let files: Vec<PathBuf> = fs::read_dir(project.join("tests/causes"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    // The notes beside the cases are no dumps.
    let cases: Vec<PathBuf> =
        fs::read_dir(project.join("tests/cases"))?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    let dumps = cases.iter().filter(|case| case.is_dir()).map(|case| benchmark::case::dump(case));
    let dumps: Vec<String> = dumps.collect::<io::Result<_>>()?;
    for program in fs::read_dir(project.join("crates/logs/table"))? {
        let text = fs::read_to_string(program?.path())?;
        let samples = text.lines().filter_map(|line| line.strip_prefix("sample = "));
        samples.map(|line| line.trim_matches(['\'', '"'])).try_for_each(|line| seed("logs", line))?;
    }
    for text in files.iter().filter_map(|file| fs::read_to_string(file).ok()).chain(dumps) {
        let pages = text.split("```yaml\n").skip(1).filter_map(|block| block.split("```").next());
        for dump in pages.chain((!text.contains("```")).then_some(text.as_str())) {
            seed("dump", dump)?;
        }
        for user_data in blocks(&text, "userData: ") {
            READERS_OF_USER_DATA.iter().try_for_each(|target| seed(target, &user_data))?;
            for flags in user_data.split('\'').filter(|word| word.starts_with("--")) {
                seed("systemd", flags)?;
                seed("kubelet_flags", &flags.replace(' ', "\n"))?;
            }
        }
        for mappings in blocks(&text, "mapRoles: ").chain(blocks(&text, "mapUsers: ")) {
            seed("aws_auth", &mappings)?;
        }
    }
    Ok(())
}

/// The texts of the block scalars behind `key`.
fn blocks<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = String> + 'a {
    text.match_indices(key).filter_map(move |(at, _)| {
        let mut lines = text[at..].lines().skip(1).peekable();
        let indent = lines.peek()?.find(|c| c != ' ')?;
        let block: Vec<&str> = lines
            .map_while(|line| {
                if line.trim().is_empty() {
                    Some("")
                } else {
                    line.get(indent..).filter(|_| line[..indent].trim().is_empty())
                }
            })
            .collect();
        text[at + key.len()..].starts_with(['|', '>']).then(|| block.join("\n") + "\n")
    })
}

fn seed(target: &str, input: &str) -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    let mut hasher = DefaultHasher::new();
    input.hash(&mut hasher);
    fs::write(folder.join(format!("{:016x}", hasher.finish())), input)
}
