//! `nodewhy userdata`: what the machines of a node class will really run, and what two classes or files
//! make them run differently.

use super::flags::LiveFlags;
use super::{BAD_INPUT, Color, NO_CLUSTER, block_on, color, complain, connect, fail, print};
use crate::ingest::dump;
use crate::ingest::list;
use crate::ingest::regular;
use crate::report::userdata::difference::{self, Comparison, Pair};
use crate::report::userdata::{self as report, Page};
use chrono::Utc;
use clap::{ArgGroup, Args, ValueEnum};
use engine::cluster_state::ClusterState;
use engine::effective::{self, ClusterIdentity, Machine};
use engine::lint::template;
use engine::objects::input::{Input, Object};
use engine::objects::sink::{ObjectText, Sink};
use engine::objects::{NodeClass, NodePool};
use engine::upstream::karpenter::{Karpenter, Version};
use readers::userdata::{Consequence, Family};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub const EXIT_CODES: &str = "Exit codes: 0 success; 1 --fail-on found user data that keeps the node from joining or \
                              has no effect; 2 bad usage or input; 3 the cluster could not be read.";

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("input").args(["files", "diff"]).multiple(true))]
pub struct UserDataArgs {
    /// Show only this node class [default: every node class of the cluster]
    name: Option<String>,
    /// Read EC2NodeClasses, with or without NodePools, from this file, directory or - (standard input). With
    /// --ami-family, read plain user data. Repeatable. Needs no cluster
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    files: Vec<PathBuf>,
    /// Show only what changes on nodes from OLD to NEW. Both are files or directories as for -f, or node classes of -f
    /// or of the cluster
    #[arg(long, num_args = 2, value_names = ["OLD", "NEW"], conflicts_with = "name")]
    diff: Vec<PathBuf>,
    /// Treat the files as plain user data of this AMI family: AL2, AL2023, Bottlerocket, Windows2022 or Custom
    #[arg(long, value_name = "FAMILY", requires = "input", conflicts_with = "name")]
    ami_family: Option<String>,
    /// Show only nodes of this NodePool
    #[arg(long, value_name = "NAME")]
    nodepool: Option<String>,
    /// Version of Karpenter [default: the version of its Deployment]
    #[arg(long, value_name = "VERSION")]
    karpenter: Option<String>,
    /// Version of the kubelet, for example 1.34 [default: the version in the names of the images]
    #[arg(long, value_name = "VERSION")]
    kubernetes: Option<String>,
    #[command(flatten)]
    cluster: LiveFlags,
    #[arg(short, long, value_enum, default_value_t)]
    output: UserDataFormat,
    /// Exit with 1 if the user data has a mistake of this kind
    #[arg(long, value_enum)]
    fail_on: Option<FailOn>,
    #[arg(long, value_enum, default_value_t)]
    color: Color,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum UserDataFormat {
    /// Tables. Each mistake is marked with ^ below its line
    #[default]
    Text,
    /// An EffectiveUserDataList; with --diff a UserDataDifferenceList
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// It keeps the node from joining
    Stop,
    /// Like stop, or a part of the user data has no effect
    Lost,
}

/// What to say, and the exit code.
type Failure = (String, u8);

pub fn run(args: &UserDataArgs) -> ExitCode {
    let code = match &*args.diff {
        [old, new] => show_difference(args, old, new),
        _ => show(args),
    };
    code.unwrap_or_else(|(error, code)| fail(&error, code))
}

fn show(args: &UserDataArgs) -> Result<ExitCode, Failure> {
    let versions = Versions::of(args)?;
    let side = Side::read(args, &args.files)?;
    let setting = Setting { versions, installed: side.state.karpenter() };
    let members = side.members(&side.state, args.name.as_deref(), args.nodepool.as_deref());
    let pages: Vec<Page> = members.into_iter().map(|members| setting.page_alone(members)).collect();
    if pages.is_empty() && side.is_explained() && args.name.is_none() && args.nodepool.is_none() {
        return Ok(ExitCode::from(BAD_INPUT));
    }
    if pages.is_empty() {
        return Err((nothing(args), BAD_INPUT));
    }
    let text = match args.output {
        UserDataFormat::Text => report::text(&pages, color(args.color)),
        UserDataFormat::Json => report::json(&pages),
    };
    print(&text).map_err(|error| (error, BAD_INPUT))?;
    Ok(exit_code(args, side.is_clean, pages.iter()))
}

fn show_difference(args: &UserDataArgs, old: &Path, new: &Path) -> Result<ExitCode, Failure> {
    let versions = Versions::of(args)?;
    let (first, second);
    let (comparison, is_clean) = if are_files(args, old, new) {
        first = Side::read(args, &[old.to_owned()])?;
        second = Side::read(args, &[new.to_owned()])?;
        (of_files(args, versions, &first, &second), first.is_clean && second.is_clean)
    } else {
        first = Side::read(args, &args.files)?;
        (of_classes(args, versions, &first, &old.to_string_lossy(), &new.to_string_lossy())?, first.is_clean)
    };
    if comparison.pairs.is_empty() && comparison.only_old.is_empty() && comparison.only_new.is_empty() {
        return Err((nothing(args), BAD_INPUT));
    }
    let text = match args.output {
        UserDataFormat::Text => difference::text(&comparison, color(args.color)),
        UserDataFormat::Json => difference::json(&comparison),
    };
    print(&text).map_err(|error| (error, BAD_INPUT))?;
    let new_pages = comparison.pairs.iter().map(|pair| &pair.new).chain(&comparison.only_new);
    Ok(exit_code(args, is_clean, new_pages))
}

/// Whether the two are files or directories. Otherwise they are names of node classes.
fn are_files(args: &UserDataArgs, old: &Path, new: &Path) -> bool {
    let is_file = |path: &Path| path.as_os_str() == "-" || path.components().count() > 1 || path.exists();
    args.ami_family.is_some() || (args.files.is_empty() && is_file(old) && is_file(new))
}

/// The nodes of two files. Nodes belong together if they have the same NodePool or, without one, the same node class.
fn of_files<'s>(args: &UserDataArgs, versions: Versions, old: &'s Side, new: &'s Side) -> Comparison<'s> {
    let members = |side: &'s Side, other: &'s Side| {
        // The NodePools are often in another file than the classes: then both sides have the same ones.
        let pools = if side.state.pools().next().is_some() { &side.state } else { &other.state };
        side.members(pools, None, args.nodepool.as_deref())
    };
    let mut of_new = members(new, old);
    let (mut pairs, mut of_old) = (Vec::new(), Vec::new());
    for members in members(old, new) {
        match of_new.iter().position(|other| other.key() == members.key()) {
            Some(at) => pairs.push((members, of_new.remove(at))),
            None => of_old.push(members),
        }
    }
    if let ([_], [_]) = (&*of_old, &*of_new) {
        pairs.extend(of_old.drain(..).zip(of_new.drain(..)));
    }
    let installed = (old.state.karpenter(), new.state.karpenter());
    let old_setting = Setting { versions, installed: installed.0.or(installed.1) };
    let new_setting = Setting { versions, installed: installed.1.or(installed.0) };
    let pair = |(old, new): (Members<'s>, Members<'s>)| {
        let (old_class, new_class) = (old.class, new.class);
        Pair { old: old_setting.page(old, new_class), new: new_setting.page(new, old_class) }
    };
    Comparison {
        pairs: pairs.into_iter().map(pair).collect(),
        only_old: of_old.into_iter().map(|members| old_setting.page_alone(members)).collect(),
        only_new: of_new.into_iter().map(|members| new_setting.page_alone(members)).collect(),
    }
}

/// The nodes of two node classes. A NodePool that uses either class is taken as if it used the one and then the other.
fn of_classes<'s>(
    args: &UserDataArgs,
    versions: Versions,
    side: &'s Side,
    old: &str,
    new: &str,
) -> Result<Comparison<'s>, Failure> {
    let (old, new) = (side.class(old)?, side.class(new)?);
    let setting = Setting { versions, installed: side.state.karpenter() };
    let mut comparison = Comparison::default();
    for pool in pools_of(&side.state, &[old.class, new.class], args.nodepool.as_deref()) {
        comparison.pairs.push(Pair {
            old: setting.page(Members { pool, ..old.clone() }, new.class),
            new: setting.page(Members { pool, ..new.clone() }, old.class),
        });
    }
    Ok(comparison)
}

fn exit_code<'p, 's: 'p>(
    args: &UserDataArgs,
    is_clean: bool,
    mut pages: impl Iterator<Item = &'p Page<'s>>,
) -> ExitCode {
    let fails = |page: &Page| {
        page.effective.defects.iter().any(|defect| match defect.consequence(page.machine.family) {
            Consequence::NoLaunch | Consequence::NoJoin => args.fail_on.is_some(),
            Consequence::Lost => args.fail_on == Some(FailOn::Lost),
            Consequence::Unknown => false,
        })
    };
    if is_clean { ExitCode::from(u8::from(pages.any(fails))) } else { ExitCode::from(BAD_INPUT) }
}

/// The versions that the user named.
#[derive(Clone, Copy)]
struct Versions {
    karpenter: Option<Version>,
    /// The minor version of Kubernetes 1.
    kubernetes: Option<u32>,
}

impl Versions {
    fn of(args: &UserDataArgs) -> Result<Self, Failure> {
        let parse = |text: Option<&str>| version(text).map_err(|error| (error, BAD_INPUT));
        let karpenter = parse(args.karpenter.as_deref())?;
        let kubernetes = parse(args.kubernetes.as_deref())?;
        Ok(Self { karpenter, kubernetes: kubernetes.map(|Version(_, minor, _)| minor) })
    }
}

/// What is known besides the node class and the NodePool.
#[derive(Clone, Copy)]
struct Setting<'s> {
    versions: Versions,
    installed: Option<&'s Karpenter>,
}

impl<'s> Setting<'s> {
    /// What these nodes run. `other` is the class that they are compared with. Its images show the version of
    /// Kubernetes if the class has none yet.
    fn page(&self, members: Members<'s>, other: &NodeClass) -> Page<'s> {
        let Members { class, family, pool, source } = members;
        let is_set = |text: &&str| !text.is_empty();
        let by_image = || NodeClass::kubernetes(class).or_else(|| NodeClass::kubernetes(other));
        let machine = Machine {
            class,
            family,
            pool,
            karpenter: self.versions.karpenter.or(self.installed.map(|k| k.version)),
            kubernetes: self.versions.kubernetes.or_else(by_image),
            cluster: ClusterIdentity {
                name: self.installed.and_then(|k| k.cluster_name.as_deref()).filter(is_set),
                endpoint: self.installed.and_then(|k| k.cluster_endpoint.as_deref()).filter(is_set),
                authority: self.installed.and_then(|k| k.cluster_ca_bundle.as_deref()).filter(is_set),
            },
        };
        Page { machine, effective: effective::resolve(&machine), source }
    }

    fn page_alone(&self, members: Members<'s>) -> Page<'s> {
        let class = members.class;
        self.page(members, class)
    }
}

/// The nodes of a node class in one NodePool, or of the class alone.
#[derive(Clone)]
struct Members<'s> {
    class: &'s NodeClass,
    family: Family,
    pool: Option<&'s NodePool>,
    source: String,
}

impl<'s> Members<'s> {
    fn of(class: &'s NodeClass, family: Family) -> Self {
        Self { class, family, pool: None, source: format!("{}/{} spec.userData", class.kind, class.name()) }
    }

    /// Whether they have a NodePool, and its name or that of the class.
    fn key(&self) -> (bool, &str) {
        self.pool.map_or((false, self.class.name()), |pool| (true, pool.name()))
    }
}

/// A cluster, files with objects, or files that are plain user data.
struct Side {
    state: ClusterState,
    /// Plain user data with the names of the files.
    bare: Vec<(String, NodeClass)>,
    has_templates: bool,
    /// Whether nodewhy could read all of it.
    is_clean: bool,
}

impl Side {
    fn read(args: &UserDataArgs, files: &[PathBuf]) -> Result<Self, Failure> {
        let mut side = Self { state: ClusterState::default(), bare: Vec::new(), has_templates: false, is_clean: true };
        if let Some(family) = &args.ami_family {
            side.bare = bare_classes(family, files).map_err(|error| (error, BAD_INPUT))?;
        } else if files.is_empty() {
            load(&args.cluster, &mut side.state).map_err(|error| (error, NO_CLUSTER))?;
        } else {
            let mut manifests = Manifests { state: &mut side.state, templates: Vec::new() };
            let summary = dump::load(files, &mut manifests);
            let templates = manifests.templates;
            for template in &templates {
                complain(template);
            }
            side.has_templates = !templates.is_empty();
            summary.complaints.iter().chain(&summary.suspicions).for_each(|complaint| complain(&complaint.to_string()));
            side.is_clean = summary.complaints.is_empty();
        }
        Ok(side)
    }

    /// Whether the output already says why there is nothing to show.
    fn is_explained(&self) -> bool {
        self.has_templates || self.state.classes().any(|facts| !facts.class.is_ec2())
    }

    /// The nodes of the classes, of all or of the one with this name, in these NodePools, and those of plain user data.
    fn members<'s>(&'s self, pools: &'s ClusterState, name: Option<&str>, pool: Option<&str>) -> Vec<Members<'s>> {
        let mut members = Vec::new();
        for (source, class) in &self.bare {
            if let Some(family) = class.family() {
                members.push(Members { class, family, pool: None, source: source.clone() });
            }
        }
        for class in self.state.classes().map(|facts| &facts.class) {
            if name.is_some_and(|name| name != class.name()) {
                continue;
            }
            match family_of(class) {
                Ok(family) => {
                    let own = Members::of(class, family);
                    members.extend(
                        pools_of(pools, &[class], pool).into_iter().map(|pool| Members { pool, ..own.clone() }),
                    );
                }
                Err(error) => complain(&error),
            }
        }
        members
    }

    /// The node class with this name.
    fn class(&self, name: &str) -> Result<Members<'_>, Failure> {
        let mut classes = self.state.classes().map(|facts| &facts.class);
        let Some(class) = classes.find(|class| class.name() == name) else {
            return Err((format!("no node class is called {name}, and --diff found no two files"), BAD_INPUT));
        };
        family_of(class).map(|family| Members::of(class, family)).map_err(|error| (error, BAD_INPUT))
    }
}

/// The family of the class's images, or a sentence about why nodewhy reads no user data of it.
fn family_of(class: &NodeClass) -> Result<Family, String> {
    let (kind, name) = (&class.kind, class.name());
    if !class.is_ec2() {
        return Err(format!(
            "{kind} {name} of {} has no user data that nodewhy reads; only EC2NodeClasses do",
            class.api_version
        ));
    }
    class.family().ok_or_else(|| format!("{kind} {name} has no known amiFamily and no known alias"))
}

/// Node classes of nothing but the user data in these files.
fn bare_classes(family: &str, files: &[PathBuf]) -> Result<Vec<(String, NodeClass)>, String> {
    if Family::from_name(family).is_none() {
        return Err(format!(
            "no amiFamily is called {family}: AL2, AL2023, Bottlerocket, Windows2019, Windows2022, Windows2025, Custom"
        ));
    }
    let mut classes = Vec::new();
    for file in files {
        let text = read(file).map_err(|error| format!("{}: cannot be read: {error}", file.display()))?;
        classes.push((file.display().to_string(), bare_class(family, text)));
    }
    Ok(classes)
}

/// Manifests that people wrote by hand: they may end anywhere and may be templates.
struct Manifests<'s> {
    state: &'s mut ClusterState,
    templates: Vec<String>,
}

impl Sink for Manifests<'_> {
    fn object(&mut self, object: Object, text: ObjectText<'_>) {
        self.state.object(object, text);
    }

    fn wants_file(&self, _file: &str, begins: &str) -> bool {
        template::is_template(begins)
    }

    fn file(&mut self, file: &str, text: &str) {
        self.templates.push(template::told(file, text));
    }

    fn expects_only_objects(&self) -> bool {
        false
    }
}

/// The NodePools that launch machines of one of these classes; the class alone where none does.
fn pools_of<'w>(state: &'w ClusterState, classes: &[&NodeClass], only: Option<&str>) -> Vec<Option<&'w NodePool>> {
    let names = |pool: &&NodePool| {
        let reference = &pool.spec.template.spec.node_class_ref;
        let is_named = |class: &&NodeClass| reference.kind == class.kind && reference.name == class.name();
        classes.iter().any(is_named) && only.is_none_or(|only| only == pool.name())
    };
    let pools: Vec<_> = state.pools().filter(names).map(Some).collect();
    if pools.is_empty() && only.is_none() { vec![None] } else { pools }
}

fn nothing(args: &UserDataArgs) -> String {
    match (&args.name, &args.nodepool) {
        (_, Some(pool)) => format!("no NodePool {pool} uses this node class"),
        (Some(name), None) => format!("no node class is called {name}"),
        (None, None) if args.files.is_empty() && args.diff.is_empty() => "the cluster has no EC2NodeClass".to_owned(),
        (None, None) => "nodewhy could read no EC2NodeClass; for files of plain user data, add --ami-family".to_owned(),
    }
}

/// `1.34`, `v1.14.1`.
fn version(text: Option<&str>) -> Result<Option<Version>, String> {
    let parse = |text: &str| {
        Version::parse(text).ok_or_else(|| format!("{text} is no version; expected one like 1.34 or 1.14.1"))
    };
    text.map(parse).transpose()
}

fn read(file: &Path) -> std::io::Result<String> {
    /// EC2 takes 16 KiB.
    const MOST: u64 = 16 << 20;
    regular::read_text(file, MOST)
}

/// A node class of nothing but its user data.
fn bare_class(family: &str, text: String) -> NodeClass {
    let mut class = NodeClass { kind: "EC2NodeClass".to_owned(), ..NodeClass::default() };
    class.spec.ami_family = Some(family.to_owned());
    class.spec.user_data = Some(text);
    class
}

/// Reads the node classes, the NodePools and Karpenter's Deployment, nothing else.
fn load(cluster: &LiveFlags, state: &mut ClusterState) -> Result<(), String> {
    const INPUTS: [Input; 3] = [Input::NodeClasses, Input::NodePools, Input::Deployments];
    let loaded = block_on(async {
        let connection = connect(cluster).await?;
        Ok(list::load_only(&connection.client, state, Utc::now(), &INPUTS).await)
    });
    loaded.map_err(|error| error.to_string()).flatten()?.iter().for_each(|complaint: &String| complain(complaint));
    state
        .missing(Input::NodeClasses)
        .map_or(Ok(()), |why| Err(format!("nothing to read: EC2NodeClasses cannot be read ({why})")))
}
