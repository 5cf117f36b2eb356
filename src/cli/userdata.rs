//! `nodewhy userdata`: what the machines of a node class will really run.

use super::flags::LiveFlags;
use super::{BAD_INPUT, Color, NO_CLUSTER, block_on, color, complain, connect, fail, print};
use crate::ingest::dump;
use crate::ingest::list;
use crate::ingest::regular;
use crate::report::userdata::{self as report, Page};
use chrono::Utc;
use clap::{Args, ValueEnum};
use engine::cluster_state::ClusterState;
use engine::effective::{self, ClusterIdentity, Machine};
use engine::lint::template;
use engine::objects::input::{Input, Object};
use engine::objects::sink::{ObjectText, Sink};
use engine::objects::{NodeClass, NodePool};
use engine::upstream::karpenter::Version;
use readers::userdata::{Consequence, Family};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub const EXIT_CODES: &str = "Exit codes: 0 success; 1 --fail-on found user data that keeps the node from joining or has no effect; 2 bad usage or input; 3 the cluster could not be read.";

#[derive(Debug, Args)]
pub struct UserDataArgs {
    /// Show only this node class [default: every node class of the cluster]
    name: Option<String>,
    /// Read EC2NodeClasses, with or without NodePools, from this file, directory or - (standard input). With --ami-family,
    /// read plain user data. Repeatable. Needs no cluster
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    files: Vec<PathBuf>,
    /// Treat the files as plain user data of this AMI family: AL2, AL2023, Bottlerocket, Windows2022 or Custom
    #[arg(long, value_name = "FAMILY", requires = "files", conflicts_with = "name")]
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
    /// Exit with 1 if user data keeps the node from joining (stop), or if a part of it has no effect (lost; includes stop)
    #[arg(long, value_enum)]
    fail_on: Option<FailOn>,
    #[arg(long, value_enum, default_value_t)]
    color: Color,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum UserDataFormat {
    /// Tables, and mistakes with carets
    #[default]
    Text,
    /// An EffectiveUserDataList
    Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Stop,
    Lost,
}

pub fn run(args: &UserDataArgs) -> ExitCode {
    let (karpenter, kubernetes) = match (versions(args.karpenter.as_deref()), versions(args.kubernetes.as_deref())) {
        (Ok(karpenter), Ok(kubernetes)) => (karpenter, kubernetes.map(|Version(_, minor, _)| minor)),
        (Err(error), _) | (_, Err(error)) => return fail(&error, BAD_INPUT),
    };
    let mut state = ClusterState::default();
    let mut bare = Vec::new();
    let mut clean = true;
    // Whether the output already says why there is nothing to show.
    let mut is_explained = false;
    if let Some(family) = &args.ami_family {
        if Family::from_name(family).is_none() {
            return fail(
                &format!(
                    "no amiFamily is called {family}: AL2, AL2023, Bottlerocket, Windows2019, Windows2022, Windows2025, Custom"
                ),
                BAD_INPUT,
            );
        }
        for file in &args.files {
            match read(file) {
                Ok(text) => bare.push((file.display().to_string(), bare_class(family, text))),
                Err(error) => return fail(&format!("{}: cannot be read: {error}", file.display()), BAD_INPUT),
            }
        }
    } else if args.files.is_empty() {
        if let Err(error) = load(&args.cluster, &mut state) {
            return fail(&error, NO_CLUSTER);
        }
    } else {
        let mut manifests = Manifests { state: &mut state, templates: Vec::new() };
        let summary = dump::load(&args.files, &mut manifests);
        manifests.templates.iter().for_each(|template| complain(template));
        is_explained |= !manifests.templates.is_empty();
        summary.complaints.iter().chain(&summary.suspicions).for_each(|complaint| complain(&complaint.to_string()));
        clean = summary.complaints.is_empty();
    }
    let installed = state.karpenter();
    let machine = |class, family, pool| Machine {
        class,
        family,
        pool,
        karpenter: karpenter.or(installed.map(|k| k.version)),
        kubernetes: kubernetes.or_else(|| NodeClass::kubernetes(class)),
        cluster: ClusterIdentity {
            name: installed.and_then(|k| k.cluster_name.as_deref()).filter(|name| !name.is_empty()),
            endpoint: installed.and_then(|k| k.cluster_endpoint.as_deref()).filter(|endpoint| !endpoint.is_empty()),
            authority: installed.and_then(|k| k.cluster_ca_bundle.as_deref()).filter(|authority| !authority.is_empty()),
        },
    };
    let mut pages: Vec<Page> = Vec::new();
    for (source, class) in &bare {
        let Some(family) = class.family() else { continue };
        let machine = machine(class, family, None);
        pages.push(Page { machine, effective: effective::resolve(&machine), source: source.clone() });
    }
    for class in state
        .classes()
        .map(|facts| &facts.class)
        .filter(|class| args.name.as_deref().is_none_or(|name| name == class.name()))
    {
        if !class.is_ec2() {
            complain(&format!(
                "{} {} of {} has no user data that nodewhy reads; only EC2NodeClasses do",
                class.kind,
                class.name(),
                class.api_version
            ));
            is_explained = true;
            continue;
        }
        let Some(family) = class.family() else {
            complain(&format!("{} {} has no known amiFamily and no known alias", class.kind, class.name()));
            continue;
        };
        for pool in pools_of(&state, class, args.nodepool.as_deref()) {
            let machine = machine(class, family, pool);
            pages.push(Page {
                machine,
                effective: effective::resolve(&machine),
                source: format!("{}/{} spec.userData", class.kind, class.name()),
            });
        }
    }
    if pages.is_empty() && is_explained && args.name.is_none() && args.nodepool.is_none() {
        return ExitCode::from(BAD_INPUT);
    }
    if pages.is_empty() {
        return fail(&nothing(args), BAD_INPUT);
    }
    let text = match args.output {
        UserDataFormat::Text => report::text(&pages, color(args.color)),
        UserDataFormat::Json => report::json(&pages),
    };
    if let Err(error) = print(&text) {
        return fail(&error, BAD_INPUT);
    }
    let fails = |page: &Page| {
        page.effective.defects.iter().any(|defect| match defect.consequence(page.machine.family) {
            Consequence::NoLaunch | Consequence::NoJoin => args.fail_on.is_some(),
            Consequence::Lost => args.fail_on == Some(FailOn::Lost),
            Consequence::Unknown => false,
        })
    };
    if clean { ExitCode::from(u8::from(pages.iter().any(fails))) } else { ExitCode::from(BAD_INPUT) }
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

/// The NodePools that launch machines of this class; the class alone where none does.
fn pools_of<'w>(state: &'w ClusterState, class: &NodeClass, only: Option<&str>) -> Vec<Option<&'w NodePool>> {
    let names = |pool: &&NodePool| {
        let reference = &pool.spec.template.spec.node_class_ref;
        reference.kind == class.kind && reference.name == class.name() && only.is_none_or(|only| only == pool.name())
    };
    let pools: Vec<_> = state.pools().filter(names).map(Some).collect();
    if pools.is_empty() && only.is_none() { vec![None] } else { pools }
}

fn nothing(args: &UserDataArgs) -> String {
    match (&args.name, &args.nodepool) {
        (_, Some(pool)) => format!("no NodePool {pool} that uses this node class"),
        (Some(name), None) => format!("no node class is called {name}"),
        (None, None) if args.files.is_empty() => "the cluster has no EC2NodeClass".to_owned(),
        (None, None) => "no EC2NodeClass could be read; say what bare user data is for with --ami-family".to_owned(),
    }
}

/// `1.34`, `v1.14.1`.
fn versions(text: Option<&str>) -> Result<Option<Version>, String> {
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
