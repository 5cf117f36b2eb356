//! Cases made at random, and what two readers make of them.

use std::{
    env,
    fmt::{Debug, Write as _},
    io::{BufRead, BufReader, Write as _},
    process::{Command, Stdio},
    thread,
};

use serde::{Serialize, de::DeserializeOwned};

/// Numbers that are the same in every run of one seed.
pub struct Random(u64);

impl Default for Random {
    fn default() -> Self {
        Self::new()
    }
}

impl Random {
    pub fn new() -> Self {
        Self(seed())
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// Up to `most` pieces in a row.
    pub fn text(&mut self, pieces: &[&str], most: usize) -> String {
        (0..=self.below(most)).map(|_| self.pick(pieces)).collect()
    }

    /// `count` such texts, without repetition.
    pub fn texts(&mut self, pieces: &[&str], most: usize, count: usize) -> Vec<String> {
        let mut texts: Vec<String> = (0..count).map(|_| self.text(pieces, most)).collect();
        texts.sort();
        texts.dedup();
        texts
    }
}

fn seed() -> u64 {
    env::var("NODEWHY_SEED").map_or(1, |seed| seed.parse().expect("NODEWHY_SEED is a number"))
}

/// Asks a program that answers each line of JSON with one.
pub fn ask<Q: Serialize, A: DeserializeOwned>(program: &mut Command, questions: &[Q]) -> Vec<A> {
    let mut child = program
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{program:?}: {error}"));
    let lines: Vec<String> = questions.iter().map(|question| serde_json::to_string(question).unwrap()).collect();
    let mut stdin = child.stdin.take().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let answers: Vec<A> = thread::scope(|scope| {
        scope.spawn(move || lines.iter().try_for_each(|line| writeln!(stdin, "{line}")));
        stdout.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
    });
    assert!(child.wait().unwrap().success(), "{program:?} failed");
    assert_eq!(answers.len(), questions.len(), "{program:?} answers every question");
    answers
}

/// Where two readers differ, of the cases in which ours is sure.
pub struct Comparison {
    asked: usize,
    compared: usize,
    differences: Vec<(String, String)>,
}

/// `ours` returns nothing where it is not sure.
pub fn compare<C: Debug, A: PartialEq + Debug>(
    cases: &[C],
    theirs: &[A],
    ours: impl Fn(&C, &A) -> Option<A>,
) -> Comparison {
    assert_eq!(cases.len(), theirs.len());
    let mut comparison = Comparison { asked: cases.len(), compared: 0, differences: Vec::new() };
    for (case, theirs) in cases.iter().zip(theirs) {
        let Some(ours) = ours(case, theirs) else { continue };
        comparison.compared += 1;
        if ours != *theirs {
            comparison
                .differences
                .push((format!("{case:?}"), format!("  ours   {ours:.400?}\n  theirs {theirs:.400?}")));
        }
    }
    comparison.differences.sort_by_key(|(case, _)| case.len());
    comparison
}

impl Comparison {
    /// Our reader agrees in all of at least `enough` cases.
    #[track_caller]
    pub fn agrees(&self, enough: usize) {
        let mut report = String::new();
        for (case, answers) in self.differences.iter().take(12) {
            let _ = writeln!(report, "{case}\n{answers}");
        }
        let (differ, compared, seed) = (self.differences.len(), self.compared, seed());
        assert!(differ == 0, "{differ} of {compared} differ; NODEWHY_SEED={seed}; the shortest:\n{report}");
        assert!(compared >= enough, "only {compared} cases were compared; NODEWHY_SEED={seed}");
        println!("agrees in all {compared} cases that our reader is sure of, of {}", self.asked);
    }

    /// A reader that is wrong on purpose is found out; one that is not would say that this comparison proves nothing.
    #[track_caller]
    pub fn finds_the_mistake(&self) {
        assert!(
            !self.differences.is_empty(),
            "none of {} cases shows the mistake; NODEWHY_SEED={}",
            self.compared,
            seed()
        );
    }
}
