//! How the texts speak: as docs/style.md says, counted. The limits are near what readers of well-written tools see.

use std::fs;
use std::path::{Path, PathBuf};
use testkit::project;

/// Words that nobody in this field uses.
const ODD: &[&str] = &[
    "anew",
    "mend",
    "mends",
    "mended",
    "turned away",
    "let in",
    "lets in",
    "come in by",
    "comes in by",
    "by turns",
    "in vain",
    "goes by",
    "whom",
    "whose own",
    "nobody answers",
    "nobody reads",
    "nobody knows",
    "of such",
    "stand in the way",
    "stands in the way",
    "as it stands",
    "what stands",
    "who does",
    "that which",
    "once more be",
    "is told",
    "are told",
    "to be mended",
];

/// A sentence that opens with one of these mostly has its parts turned round.
const INVERTED: &[&str] = &["What", "Who", "Whose", "Of", "That", "Whom"];

/// More words than this, and a tired reader begins again.
const LONGEST: usize = 35;

/// The sentences of a document, without code, tables, headings and quotes.
fn sentences(text: &str) -> Vec<String> {
    let (mut paragraphs, mut fenced) = (vec![String::new()], false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            continue;
        }
        let is_prose = !fenced && !["    ", "|", "#", ">", "[", "- ["].iter().any(|start| line.starts_with(start));
        let item = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        let begins = line.trim().is_empty() || ["- ", "* ", ". "].iter().any(|mark| item.starts_with(mark));
        if begins {
            paragraphs.push(String::new());
        }
        if is_prose {
            let paragraph = paragraphs.last_mut().expect("it begins with one");
            *paragraph += " ";
            *paragraph += line.trim();
        }
    }
    paragraphs.iter().flat_map(|paragraph| split(paragraph)).filter(|sentence| words(sentence) > 3).collect()
}

/// A paragraph, split behind each end of a sentence.
fn split(paragraph: &str) -> Vec<String> {
    let (mut sentences, mut sentence) = (Vec::new(), Vec::new());
    let mut following = paragraph.split_whitespace().peekable();
    while let Some(word) = following.next() {
        sentence.push(word);
        let ends = word.ends_with(['.', '!', '?']);
        let next =
            following.peek().is_none_or(|next| next.starts_with(|c: char| c.is_ascii_uppercase() || "`[*".contains(c)));
        if ends && next {
            sentences.push(sentence.join(" "));
            sentence.clear();
        }
    }
    sentences.push(sentence.join(" "));
    sentences
}

fn words(sentence: &str) -> usize {
    sentence.split_whitespace().count()
}

fn opens_with(sentence: &str, words: &[&str]) -> bool {
    let first = sentence.trim_start_matches(['*', '`', '-', ' ']).split_whitespace().next().unwrap_or_default();
    words.contains(&first.trim_end_matches(['*', '`', ',']))
}

/// How often odd words stand in a text, as whole words.
fn odd_words(text: &str) -> usize {
    let is_edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let count = |odd: &str| {
        text.match_indices(odd)
            .filter(|(at, _)| {
                is_edge(text[..*at].chars().next_back()) && is_edge(text[at + odd.len()..].chars().next())
            })
            .count()
    };
    ODD.iter().map(|odd| count(odd)).sum()
}

fn pages() -> Vec<PathBuf> {
    markdown(&project().join("docs/causes"))
}

fn documents() -> Vec<PathBuf> {
    [markdown(project()), markdown(&project().join("docs"))].concat()
}

fn markdown(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "md")).collect();
    files.sort();
    files
}

/// Whether this is a list of sources, which is no sentence however long it is.
fn is_sources(sentence: &str) -> bool {
    sentence.starts_with("Source: ") || sentence.starts_with("Sources: ")
}

fn holds(name: &str, files: &[PathBuf]) {
    let texts: Vec<(&PathBuf, Vec<String>)> =
        files.iter().map(|file| (file, sentences(&fs::read_to_string(file).expect("UTF-8")))).collect();
    let all: Vec<&String> = texts.iter().flat_map(|(_, sentences)| sentences).collect();
    let per_thousand = |count: usize| count * 1000 / all.len();
    let count = |is: &dyn Fn(&str) -> bool| per_thousand(all.iter().filter(|sentence| is(sentence)).count());
    let (place, inverted) = (count(&|s| opens_with(s, &["Where"])), count(&|s| opens_with(s, INVERTED)));
    let odd = per_thousand(all.iter().map(|sentence| odd_words(sentence)).sum());
    let spoken: usize = all.iter().map(|sentence| words(sentence)).sum();
    let you = all.iter().flat_map(|sentence| sentence.split(|c: char| !c.is_alphabetic()));
    let you = you.filter(|word| ["You", "you", "Your", "your"].contains(word)).count() * 10_000 / spoken;
    let figures = format!(
        "{name}: per 1,000 sentences {place} open with Where, {inverted} are inverted, {odd} odd words; \
         {you} times you in 10,000 words"
    );
    assert!(place <= 5 && inverted <= 10 && odd <= 3 && you >= 25, "{figures}");
    let long: Vec<String> = texts
        .iter()
        .flat_map(|(file, sentences)| sentences.iter().map(move |sentence| (file, sentence)))
        .filter(|(_, sentence)| words(sentence) > LONGEST && !is_sources(sentence))
        .map(|(file, sentence)| format!("{}: {sentence}", file.display()))
        .collect();
    assert!(long.is_empty(), "{} sentences of more than {LONGEST} words:\n{}", long.len(), long.join("\n"));
    assert!(all.len() > 100, "{name} has only {} sentences", all.len());
}

#[test]
fn pages_of_causes_are_plain() {
    holds("docs/causes", &pages());
}

#[test]
fn documents_are_plain() {
    holds("docs", &documents());
}

#[test]
fn the_counter_sees_what_it_counts() {
    let text = "Where a claim waits, nothing is told. What it waits for, its conditions tell.\n\n    Where code is.\n\n\
                | Where | a table is |\n\nIf you see this, you can mend it (`a.b`). Amended is another word.\n";
    let all = sentences(text);
    assert_eq!(all.len(), 4, "{all:#?}");
    assert!(opens_with(&all[0], &["Where"]) && opens_with(&all[1], INVERTED) && !opens_with(&all[2], INVERTED));
    assert_eq!(all.iter().map(|sentence| odd_words(sentence)).collect::<Vec<_>>(), [1, 0, 1, 0]);
}
