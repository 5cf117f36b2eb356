//! brush-parser, another reader of shell scripts: it has an opinion on commands that bash does not come to, in
//! branches, functions and behind an exit.

use std::collections::BTreeMap;

use brush_parser::{
    Parser, ParserOptions,
    ast::{Command, CommandPrefixOrSuffixItem as Item, CompoundCommand as Compound, CompoundList, SimpleCommand},
    word::{self, WordPiece as Piece, WordPieceWithSource},
};
use readers::userdata::{shell, traced::Traced};

use testkit::compare::compare;
use testkit::scripts::scripts;

/// The words of each command `w` and `d` behind the number that is its first argument.
type Commands = BTreeMap<usize, Vec<String>>;

/// Where brush-parser 0.4.0 is wrong, by bash's word: `((` that is no arithmetic, a here-document whose last line is
/// continued, and a quote behind an escaped dollar.
fn misread(script: &str) -> bool {
    ["\n((", " ((", "(((", "\\\nE", "\\$'"].iter().any(|text| script.contains(text))
}

/// Those commands that have no expansion in their words; nothing where brush finds a mistake in the script.
fn theirs(script: &str) -> Option<Commands> {
    if misread(script) {
        return None;
    }
    // cloud-init and Karpenter take the carriage returns out.
    let text = script.replace("\r\n", "\n");
    let program = Parser::new(text.as_bytes(), &ParserOptions::default()).parse_program().ok()?;
    let mut commands = Commands::new();
    program.complete_commands.iter().for_each(|list| all_of(list, &mut commands));
    Some(commands)
}

fn all_of(list: &CompoundList, into: &mut Commands) {
    for and_or in list.0.iter().map(|item| &item.0) {
        for command in and_or.iter().flat_map(|(_, pipeline)| &pipeline.seq) {
            match command {
                Command::Simple(simple) => into.extend(plain(simple)),
                Command::Compound(compound, _) => inside(compound, into),
                Command::Function(function) => inside(&function.body.0, into),
                Command::ExtendedTest(..) => {}
            }
        }
    }
}

fn inside(compound: &Compound, into: &mut Commands) {
    match compound {
        Compound::BraceGroup(group) => all_of(&group.list, into),
        Compound::Subshell(subshell) => all_of(&subshell.list, into),
        Compound::ForClause(clause) => all_of(&clause.body.list, into),
        Compound::WhileClause(clause) | Compound::UntilClause(clause) => {
            all_of(&clause.0, into);
            all_of(&clause.1.list, into);
        }
        Compound::IfClause(clause) => {
            all_of(&clause.condition, into);
            all_of(&clause.then, into);
        }
        Compound::CaseClause(clause) => {
            clause.cases.iter().filter_map(|case| case.cmd.as_ref()).for_each(|list| all_of(list, into));
        }
        Compound::Arithmetic(_) | Compound::ArithmeticForClause(_) | Compound::Coprocess(_) => {}
    }
}

fn plain(command: &SimpleCommand) -> Option<(usize, Vec<String>)> {
    command.word_or_name.as_ref().filter(|name| matches!(name.value.as_str(), "w" | "d"))?;
    let items = command.suffix.iter().flat_map(|suffix| &suffix.0);
    let words = items.filter(|item| !matches!(item, Item::IoRedirect(_))).map(|item| match item {
        Item::Word(word) | Item::AssignmentWord(_, word) => {
            let pieces = word::parse(&word.value, &ParserOptions::default()).ok()?;
            unquoted(&pieces, false)
        }
        Item::IoRedirect(_) | Item::ProcessSubstitution(..) => None,
    });
    let words: Vec<String> = words.collect::<Option<_>>()?;
    let (number, words) = words.split_first()?;
    Some((number.parse().ok()?, words.to_vec()))
}

/// The text of a word without its quotes; nothing where there is more to it.
fn unquoted(pieces: &[WordPieceWithSource], quoted: bool) -> Option<String> {
    let text = |piece: &Piece| match piece {
        Piece::Text(text) if quoted || !text.contains(['*', '?', '[', '{', '~']) => Some(text.clone()),
        Piece::SingleQuotedText(text) => Some(text.clone()),
        Piece::DoubleQuotedSequence(pieces) => unquoted(pieces, true),
        Piece::EscapeSequence(escaped) if escaped == "\\\n" => Some(String::new()),
        Piece::EscapeSequence(escaped) => escaped.strip_prefix('\\').map(str::to_owned),
        _ => None,
    };
    pieces.iter().map(|piece| text(&piece.piece)).collect()
}

/// What we read of the commands that are asked for.
fn ours(script: &str, asked: &Commands) -> Commands {
    let read = shell::read(&Traced::written_at(script, 0));
    let mut commands = Commands::new();
    for command in read.commands {
        let words: Vec<&str> = command.words.iter().map(|word| word.text.as_str()).collect();
        if let ["w" | "d", number, words @ ..] = words.as_slice()
            && let Some(number) = number.parse().ok().filter(|number| asked.contains_key(number))
        {
            commands.insert(number, words.iter().map(|&word| word.to_owned()).collect());
        }
    }
    commands
}

#[test]
fn another_parser_finds_the_same_commands_and_words() {
    let scripts = scripts(8_000);
    let theirs: Vec<Option<Commands>> = scripts.iter().map(|script| theirs(script)).collect();
    let compare = |change: &dyn Fn(&str) -> String| {
        compare(&scripts, &theirs, |script, theirs| {
            theirs.as_ref().filter(|asked| !asked.is_empty()).map(|asked| Some(ours(&change(script), asked)))
        })
    };
    compare(&str::to_owned).agrees(2_000);
    compare(&|script| script.replace('\'', "\"")).finds_the_mistake();
    compare(&|script| script.replace("\\\n", "\n")).finds_the_mistake();
}
