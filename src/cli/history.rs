//! `nodewhy history`: what the operator recorded about machines that were stuck, also about those that are gone.

use super::flags::LiveFlags;
use super::{BAD_INPUT, NO_CLUSTER, answer, block_on, connect, fail};
use crate::ingest::diagnoses;
use crate::kube_client::PAGE;
use crate::report::history;
use chrono::Utc;
use clap::{Args, ValueEnum};
use engine::api::NodeDiagnosis;
use kube::Api;
use kube::api::ListParams;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// Show only this NodeClaim, Node, NodePool or node class, with all details
    name: Option<String>,
    /// Read NodeDiagnoses from this file or - (standard input), as `kubectl get nodediagnoses -o yaml` (or json) prints
    /// them. Needs no cluster
    #[arg(short = 'f', long = "filename", value_name = "FILE", conflicts_with_all = ["kubeconfig", "context"])]
    file: Option<PathBuf>,
    #[command(flatten)]
    cluster: LiveFlags,
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
enum Output {
    /// One line per verdict, newest incident first. An incident begins with the line of its NodePool, if there is one.
    /// Its NodeClaims and Nodes follow
    #[default]
    Text,
    Json,
    Yaml,
}

pub fn run(args: &HistoryArgs) -> ExitCode {
    let read = match &args.file {
        Some(file) => diagnoses::load(file).map_err(|error| (error, BAD_INPUT)),
        None => match block_on(of_cluster(&args.cluster)) {
            Ok(read) => read.map_err(|error| (error, NO_CLUSTER)),
            Err(error) => Err((error.to_string(), NO_CLUSTER)),
        },
    };
    let diagnoses = match read {
        Ok(diagnoses) => history::of(diagnoses, args.name.as_deref()),
        Err((error, code)) => return fail(&error, code),
    };
    if let Some(name) = args.name.as_deref().filter(|_| diagnoses.is_empty()) {
        return fail(
            &format!("no NodeDiagnosis is about {name}; the operator deletes ended ones after --retention"),
            BAD_INPUT,
        );
    }
    let shown = match args.output {
        Output::Text => Ok(history::text(&diagnoses, args.name.is_some(), Utc::now())),
        Output::Json => history::json(&diagnoses),
        Output::Yaml => history::yaml(&diagnoses),
    };
    match shown {
        Ok(text) => answer(&text),
        Err(error) => fail(&error, BAD_INPUT),
    }
}

pub(super) async fn of_cluster(flags: &LiveFlags) -> Result<Vec<NodeDiagnosis>, String> {
    let api: Api<NodeDiagnosis> = Api::all(connect(flags).await?.client);
    let (mut all, mut params) = (Vec::new(), ListParams::default().limit(PAGE));
    loop {
        let page = api.list(&params).await.map_err(|error| format!("the NodeDiagnoses cannot be read: {error}"))?;
        all.extend(page.items);
        params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
        if params.continue_token.is_none() {
            return Ok(all);
        }
    }
}
