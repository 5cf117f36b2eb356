//! What many files say, brought together by machine. Each file is looked up by the names in it, and compared with no
//! other.

use crate::journey::Journey;
use std::collections::{BTreeSet, HashMap};

/// Files, and what they say of a machine.
pub(crate) type OfMachine = (Vec<String>, Journey);

/// Machines that share no name.
#[derive(Debug, Default)]
pub(crate) struct Machines {
    known: Vec<Option<OfMachine>>,
    /// Where one is now that was brought together with another; its own place where it was not.
    moved: Vec<usize>,
    /// By the set that it is in and the name.
    by_name: HashMap<(usize, String), usize>,
    /// The hosts whose names go on after this one: `ip-10-0-0-1.ec2.internal` under `ip-10-0-0-1`.
    longer: HashMap<String, Vec<String>>,
}

/// Which of the sets of names has the hosts.
const HOSTS: usize = 1;

impl Machines {
    /// Takes in a file. It may bring several together that were known by different names.
    pub(crate) fn add(&mut self, file: String, journey: Journey) {
        let place = self.known.len();
        let mut same = BTreeSet::new();
        let sets = journey.identity.sets();
        for (set, name) in sets.into_iter().enumerate().flat_map(|(set, names)| names.iter().map(move |n| (set, n))) {
            let is_new = match self.by_name.get(&(set, name.clone())).copied() {
                Some(at) => {
                    same.insert(self.place_now(at));
                    false
                }
                None => true,
            };
            if set == HOSTS {
                same.extend(self.of_same_host(name));
            }
            if is_new {
                self.by_name.insert((set, name.clone()), place);
                for shorter in shorter(name).filter(|_| set == HOSTS) {
                    self.longer.entry(shorter.to_owned()).or_default().push(name.clone());
                }
            }
        }
        let mut own: Option<OfMachine> = None;
        for at in same.into_iter().filter(|at| *at != place) {
            if let Some(moved) = self.moved.get_mut(at) {
                *moved = place;
            }
            own = together(own, self.known.get_mut(at).and_then(Option::take));
        }
        self.moved.push(place);
        self.known.push(together(own, Some((vec![file], journey))));
    }

    /// Those that are called as this host is, with more or fewer domains behind.
    fn of_same_host(&mut self, host: &str) -> Vec<usize> {
        let longer = self.longer.get(host).into_iter().flatten().map(String::as_str);
        let names = longer.chain(shorter(host)).filter(|_| !host.is_empty());
        let places: Vec<usize> =
            names.filter_map(|name| self.by_name.get(&(HOSTS, name.to_owned())).copied()).collect();
        places.into_iter().map(|at| self.place_now(at)).collect()
    }

    fn place_now(&mut self, at: usize) -> usize {
        let mut last = at;
        while let Some(next) = self.moved.get(last).copied().filter(|next| *next != last) {
            last = next;
        }
        if let Some(moved) = self.moved.get_mut(at) {
            *moved = last;
        }
        last
    }

    /// In the order in which the last file of each was read.
    pub(crate) fn all(self) -> Vec<OfMachine> {
        self.known.into_iter().flatten().collect()
    }
}

/// What a host may be called for short: each part of its name that ends before a dot.
fn shorter(host: &str) -> impl Iterator<Item = &str> {
    host.match_indices('.').filter_map(|(at, _)| host.get(..at)).filter(|short| !short.is_empty())
}

fn together(one: Option<OfMachine>, other: Option<OfMachine>) -> Option<OfMachine> {
    match (one, other) {
        (Some((mut files, mut all)), Some((more, journey))) => {
            files.extend(more);
            all.extend(journey);
            Some((files, all))
        }
        (one, other) => one.or(other),
    }
}

/// Which machine's files stand nearest to a file: with which it shares the most folders.
pub(crate) struct Nearest {
    /// By folder, the machine that has files in it; `None` where several have.
    by_folder: HashMap<String, Option<usize>>,
    /// The only machine, where it is one.
    only: Option<usize>,
}

impl Nearest {
    /// Of those that are machines, by their place.
    pub(crate) fn of(machines: &[OfMachine]) -> Self {
        let mut by_folder: HashMap<String, Option<usize>> = HashMap::new();
        let mut only = BTreeSet::new();
        let is_machine = |own: &Journey| !own.identity.is_no_machine() && !own.is_told_by_operator();
        for (at, (files, _)) in machines.iter().enumerate().filter(|(_, (_, own))| is_machine(own)) {
            only.insert(at);
            for folder in files.iter().flat_map(|file| folders(file)) {
                let known = by_folder.entry(folder.to_owned()).or_insert(Some(at));
                if *known != Some(at) {
                    *known = None;
                }
            }
        }
        Self { by_folder, only: only.first().copied().filter(|_| only.len() == 1) }
    }

    /// Its place; `None` where several stand as near.
    pub(crate) fn to(&self, file: &str) -> Option<usize> {
        let folders: Vec<&str> = folders(file).collect();
        let nearest = folders.into_iter().rev().find_map(|folder| self.by_folder.get(folder));
        nearest.map_or(self.only, |machine| *machine)
    }
}

/// The machines that have files in each folder, by their place in a list.
#[derive(Debug, Default)]
pub(crate) struct Folders {
    /// By the number of folders on the way, and the path. The root, with all machines, is `(0, "")`.
    machines: HashMap<(usize, String), BTreeSet<usize>>,
}

impl Folders {
    pub(crate) fn add(&mut self, machine: usize, files: &[String]) {
        for (depth, folder) in files.iter().flat_map(|file| from_root(file)) {
            self.machines.entry((depth, folder.to_owned())).or_default().insert(machine);
        }
    }

    pub(crate) fn remove(&mut self, machine: usize, files: &[String]) {
        for (depth, folder) in files.iter().flat_map(|file| from_root(file)) {
            if let Some(machines) = self.machines.get_mut(&(depth, folder.to_owned())) {
                machines.remove(&machine);
            }
        }
    }

    /// The machine that shares the most folders with these files, and how many; `None` where several share as many.
    pub(crate) fn nearest(&self, files: &[String]) -> Option<(usize, usize)> {
        let all = files.iter().flat_map(|file| from_root(file));
        let shared = all.filter(|(depth, folder)| self.within(*depth, folder).next().is_some());
        let most = shared.map(|(depth, _)| depth).max()?;
        Some((self.only(files, most)?, most))
    }

    /// The only machine that shares so many folders with these files.
    pub(crate) fn only(&self, files: &[String], shared: usize) -> Option<usize> {
        let folders = files.iter().filter_map(|file| from_root(file).nth(shared));
        let mut machines = folders.flat_map(|(depth, folder)| self.within(depth, folder));
        let first = machines.next()?;
        machines.all(|other| other == first).then_some(first)
    }

    fn within(&self, depth: usize, folder: &str) -> impl Iterator<Item = usize> {
        self.machines.get(&(depth, folder.to_owned())).into_iter().flatten().copied()
    }
}

/// The root, and each folder on the way to the file, with their numbers.
fn from_root(file: &str) -> impl Iterator<Item = (usize, &str)> {
    std::iter::once("").chain(folders(file)).enumerate()
}

/// `a`, `a/b` and `a/b/c` of `a/b/c`.
fn folders(file: &str) -> impl Iterator<Item = &str> {
    file.match_indices('/').map(|(at, _)| at).chain([file.len()]).filter_map(|end| file.get(..end))
}

#[cfg(test)]
mod tests {
    use super::{Folders, Machines, Nearest};
    use crate::fact::MachineNames;
    use crate::journey::Journey;

    fn journey(hosts: &[&str], instances: &[&str]) -> Journey {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let identity = MachineNames { hosts: set(hosts), instances: set(instances), ..MachineNames::default() };
        Journey { identity, ..Journey::default() }
    }

    fn files(of: &[(&str, Journey)]) -> Vec<Vec<String>> {
        let mut machines = Machines::default();
        for (file, journey) in of {
            machines.add((*file).to_owned(), journey.clone());
        }
        machines.all().into_iter().map(|(files, _)| files).collect()
    }

    #[test]
    fn a_host_is_the_same_with_and_without_its_domain() {
        let long = "ip-10-0-0-1.eu-west-1.compute.internal";
        for [first, second] in [["ip-10-0-0-1", long], [long, "ip-10-0-0-1"], [long, "ip-10-0-0-1.eu-west-1"]] {
            assert_eq!(files(&[("a", journey(&[first], &[])), ("b", journey(&[second], &[]))]), [["a", "b"]]);
        }
        let other = [("a", journey(&["ip-1.one"], &[])), ("b", journey(&["ip-1.two"], &[]))];
        assert_eq!(files(&other), [["a"], ["b"]]);
        let short = [other.as_slice(), &[("c", journey(&["ip-1"], &[]))]].concat();
        assert_eq!(files(&short), [["a", "b", "c"]]);
    }

    #[test]
    fn one_file_brings_two_together_that_were_known_by_different_names() {
        let known = [("a", journey(&["one"], &[])), ("b", journey(&[], &["i-1"])), ("c", journey(&["two"], &[]))];
        assert_eq!(files(&known), [["a"], ["b"], ["c"]]);
        let all = [known.as_slice(), &[("d", journey(&["one"], &["i-1"])), ("e", journey(&["one"], &[]))]].concat();
        assert_eq!(files(&all), [vec!["c"], vec!["a", "b", "d", "e"]]);
    }

    #[test]
    fn the_nearest_machine_shares_the_most_folders() {
        let of = |file: &str, host: &str| (vec![file.to_owned()], journey(&[host], &[]));
        let machines = [of("bundles/one/var/messages", "one"), of("bundles/two/var/messages", "two")];
        let nearest = Nearest::of(&machines);
        assert_eq!(nearest.to("bundles/two/etc/hosts"), Some(1));
        assert_eq!(nearest.to("bundles/notes"), None);
        assert_eq!(nearest.to("notes"), None);
        assert_eq!(Nearest::of(machines.get(..1).unwrap_or_default()).to("notes"), Some(0));
    }

    #[test]
    fn the_one_machine_of_the_deepest_folder_is_nearest_until_it_is_removed() {
        let files = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        let one = files(&["logs/a/kubelet/log", "logs/a/messages"]);
        let mut folders = Folders::default();
        folders.add(0, &one);
        folders.add(1, &files(&["logs/b/messages"]));
        let tag = files(&["logs/a/system/id.txt"]);
        assert_eq!(folders.nearest(&tag), Some((0, 2)));
        assert_eq!(folders.nearest(&files(&["logs/id.txt"])), None, "both share one folder");
        assert_eq!(folders.nearest(&files(&["/logs/a/id.txt"])), None, "another root");
        folders.remove(0, &one);
        assert_eq!(folders.nearest(&tag), Some((1, 1)));
        assert_eq!(folders.nearest(&files(&["id.txt"])), Some((1, 0)));
        assert_eq!(Folders::default().nearest(&tag), None);
    }
}
