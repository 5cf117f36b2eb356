//! Shell scripts made at random, for those who read shell scripts.

use crate::compare::Random;

const PIECES: &[&str] = &[
    "a",
    "b=c",
    "--x=",
    ",",
    "ö",
    "'p q'",
    "\"p  q\"",
    "'",
    "\"",
    "\\",
    "\\\"",
    "\\ ",
    "\\$",
    "\\\n",
    "$X",
    "${X}",
    "\"$X\"",
    "\"${X}y\"",
    "$Y",
    "$UNSET",
    "${Y:-z}",
    "$(w_)",
    "`w_`",
    "$((1+2))",
    "$",
    "$'p\\tq'",
    "$'",
    "$\"r\"",
    "#",
    "~",
    "{a,b}",
    "{",
    "}",
    "[ab]",
    "*",
    "!",
    "=",
    "\"'\"",
    "'\"'",
    "\"\\\n\"",
    "\"a\\\\b\"",
    "\"a\\b\"",
    "1",
    "$1",
    "$@",
    "$#",
    "$?",
    "%",
    "^",
    "+",
];

/// Writes scripts; each of its commands `w` and `d` has a number of its own.
struct Writer {
    random: Random,
    text: String,
    number: usize,
}

/// `count` scripts.
pub fn scripts(count: usize) -> Vec<String> {
    let mut random = Random::new();
    let mut scripts = Vec::new();
    for _ in 0..count {
        let (script, after) = Writer::script(random);
        random = after;
        scripts.push(script);
    }
    scripts
}

impl Writer {
    fn script(random: Random) -> (String, Random) {
        let mut writer = Self { random, text: "X='p q'\nY=r\n".to_owned(), number: 0 };
        for _ in 0..=writer.random.below(4) {
            writer.statement(2);
            let end = writer.random.pick(&["\n", "\n", "\r\n", "\n\n"]);
            writer.push(end);
        }
        (writer.text, writer.random)
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn word(&mut self) {
        let word = self.random.text(PIECES, 4);
        self.push(&word);
    }

    fn command(&mut self, name: &str) {
        self.number += 1;
        let number = self.number;
        self.push(&format!("{name} {number}"));
        for _ in 0..self.random.below(4) {
            self.push(" ");
            self.word();
        }
    }

    fn statement(&mut self, depth: usize) {
        match self.random.below(if depth == 0 { 9 } else { 20 }) {
            0..=3 => self.command("w"),
            4 => {
                let name = self.random.pick(&["X=", "Y=", "X+=", "export X=", "readonly Z=", "X=a Y="]);
                self.push(name);
                self.word();
            }
            5 => {
                self.command("w");
                let redirection = self.random.pick(&[
                    " >out",
                    " 2>&1",
                    " 2>out",
                    " &>out",
                    " >>out",
                    " <<<in",
                    " # comment 'x",
                    " </dev/null",
                ]);
                self.push(redirection);
            }
            6 => self.here_document(),
            7 => self.push("# a comment with a ' quote"),
            8 => {
                self.push("X=q ");
                self.command("w");
            }
            9 => self.around(depth, &["if true; then ", "if false; then ", "if true\nthen\n"], &["; fi", "\nfi"]),
            10 => self.around(
                depth,
                &["for i in 1 2; do ", "while false; do ", "until true; do\n"],
                &["; done", "\ndone"],
            ),
            11 => self.around(depth, &["f() { ", "f () {\n", "function f { "], &["; }", "\n}"]),
            12 => self.around(depth, &["( ", "("], &[" )", "; )", ")"]),
            13 => self.around(depth, &["{ ", "{\n"], &["; }", "\n}"]),
            14 => self.around(
                depth,
                &["case x in x) ", "case $X in\n  *)\n", "case x in (y) "],
                &[";; esac", "\n  ;;\nesac"],
            ),
            15 => self.around(depth, &["true && ", "false && ", "true || ", "false || ", "! ", "time "], &[""]),
            16 => self.around(depth, &[""], &[" | w_", " & wait", " && true", " || true", " |& w_"]),
            17 => {
                let end = self.random.pick(&[
                    "exit",
                    "exit 0",
                    "true && exit",
                    "if true; then exit; fi",
                    "false || exit 1",
                    "f() { exit; }",
                    "(exit)",
                ]);
                self.push(end);
            }
            18 => {
                self.statement(depth - 1);
                self.push("; ");
                self.statement(depth - 1);
            }
            _ => {
                let set = self.random.pick(&[
                    "unset X",
                    "read X <<<v",
                    "local X=1",
                    "declare X=1",
                    "shift",
                    "X=(1 2)",
                    "eval X=1",
                ]);
                self.push(set);
            }
        }
    }

    fn around(&mut self, depth: usize, openings: &[&str], endings: &[&str]) {
        let opening = self.random.pick(openings);
        self.push(opening);
        self.statement(depth - 1);
        let ending = self.random.pick(endings);
        self.push(ending);
    }

    fn here_document(&mut self) {
        self.command("d");
        let (opening, end) =
            [("<<E", "E"), ("<<'E'", "E"), ("<<-E", "\tE"), ("<< \"E\"", "E"), ("<<-\\E", "E")][self.random.below(5)];
        self.push(" ");
        self.push(opening);
        self.push("\n");
        for _ in 0..self.random.below(3) {
            if self.random.below(3) == 0 {
                self.push("\t");
            }
            // Where `<<-` meets a continued line, bash strips the tabs of neither or of both.
            let word = self.random.text(PIECES, 4);
            self.push(&if opening.starts_with("<<-") {
                word.replace("\\\n", "").trim_end_matches('\\').to_owned()
            } else {
                word
            });
            self.push("\n");
        }
        self.push(end);
    }
}
