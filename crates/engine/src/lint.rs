//! `nodewhy lint`: finds in files what would keep machines from becoming usable, before anything is launched.
//!
//! No rule is written twice. The rules of `diagnose` run on machines that do not exist yet, one for each node class,
//! NodePool and image ([`machine`]). If a rule blames an object of the files, that is a finding. Mistakes that the
//! readers of user data and aws-auth see are findings too.

mod aws_auth;
mod cluster_dns;
mod contradictions;
mod flaw;
mod former;
mod ids;
mod ignore;
pub mod introduced;
mod kinds;
mod kubelet;
mod live;
mod machine;
mod machine_values;
mod max_pods;
mod named_images;
mod odd_fields;
mod overlay;
mod overridden;
pub mod page;
pub mod place;
mod requirements;
pub mod review;
mod schedule;
mod schema;
pub mod template;
pub mod upgrade;
mod version;
mod volumes;

use crate::api::{Blame, Confidence, Stage};
use crate::case::Case;
use crate::case::judging::Judging;
use crate::case::stage::Thresholds;
use crate::cluster_state::class_members::ClassMembers;
use crate::cluster_state::{AwsAuthFacts, ClassFacts, ClusterState, Subject};
use crate::diagnose;
use crate::facts::kubelet_version;
use crate::objects::input::{Input, Object};
use crate::objects::odd::{self, OddField};
use crate::objects::sink::{ObjectText, Sink};
use crate::objects::{Ami, AwsObservation, NodeClass, NodePool};
use crate::rules;
use crate::upstream::karpenter::Version;
use chrono::{DateTime, Utc};
use former::Former;
pub use live::lint_cluster;
use place::{Piece, Place};
use readers::aws_auth::DataKey;
use readers::source_text;
use readers::userdata::{self, Consequence, DefectKind, Family, Fate, Loss, UserData};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use upgrade::{Target, Upgrade};

/// How sure it is that the mistake hurts a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Warning,
    Error,
}

/// A mistake in a file or in an object of a cluster, with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LintFinding {
    /// Empty if the object is in a cluster. Line and column are then those in the text of the field, and 0 for a field
    /// as a whole.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub file: String,
    #[serde(skip_serializing_if = "is_zero")]
    pub line: usize,
    #[serde(skip_serializing_if = "is_zero")]
    pub column: usize,
    /// False if line and column are only the start of the field. The place within its text is then in `blame`.
    pub exact: bool,
    pub level: Level,
    /// The cause that `nodewhy explain` knows, otherwise the kind of the mistake.
    pub cause: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documentation: Option<String>,
    pub blame: Blame,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
const fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// The result of linting.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// In the order of the files.
    pub findings: Vec<LintFinding>,
    /// Checks that were not possible, with the reason.
    pub notes: Vec<String>,
    /// One sentence for each unreadable file that is a template. It says how to render it.
    pub templates: Vec<String>,
    /// Objects and user data that were looked at.
    pub looked_at: usize,
    /// What else matters for an upgrade, if the user names a version.
    pub upgrade: Option<Upgrade>,
}

impl Report {
    /// Whether the input gave nothing to say.
    pub fn is_empty(&self) -> bool {
        self.looked_at == 0 && self.templates.is_empty() && self.notes.is_empty()
    }
}

/// The files' objects, each with its place.
#[derive(Debug, Default)]
pub struct Files {
    objects: Vec<(Object, Piece)>,
    /// The fields of the object at this place among them that do not have their type.
    odd: BTreeMap<usize, Vec<OddField>>,
    /// Objects of versions that Karpenter no longer has, by apiVersion.
    former: BTreeMap<String, Vec<Former>>,
    user_data: Vec<(String, String)>,
    templates: Vec<String>,
    target: Target,
    /// The answers of AWS about the images that the classes select.
    aws: Vec<AwsObservation>,
}

impl Files {
    /// The node classes, for the caller that asks AWS about their images.
    pub fn classes_mut(&mut self) -> impl Iterator<Item = &mut NodeClass> {
        self.objects
            .iter_mut()
            .filter_map(|(object, _)| if let Object::NodeClass(class) = object { Some(class) } else { None })
    }

    /// The minor version of Kubernetes 1 that the cluster has, or will have.
    pub const fn for_kubernetes(&mut self, minor: u32) {
        self.target.kubernetes = Some(minor);
    }

    /// The version of Karpenter that the cluster has, or will have.
    pub const fn for_karpenter(&mut self, version: Version) {
        self.target.karpenter = Some(version);
    }

    /// The files that hold objects.
    pub fn names(&self) -> BTreeSet<String> {
        self.objects.iter().map(|(_, piece)| piece.file.clone()).collect()
    }

    /// Kustomize merges the objects of these files into others.
    pub fn are_patches(&mut self, files: &BTreeSet<String>) {
        for (_, piece) in &mut self.objects {
            piece.is_patch = files.contains(&piece.file);
        }
    }

    /// Adds answers of AWS.
    pub fn told(&mut self, answers: impl IntoIterator<Item = AwsObservation>) {
        self.aws.extend(answers);
    }
}

impl Sink for Files {
    fn object(&mut self, mut object: Object, text: ObjectText<'_>) {
        // In files the namespace is often set by what applies them.
        if let Object::AwsAuth(map) = &mut object
            && map.metadata.name == "aws-auth"
        {
            map.metadata.namespace.get_or_insert_with(|| "kube-system".into());
        }
        if let Some(version) = former::version(&object) {
            self.former.entry(version).or_default().push(Former::new(&object, text.into()));
        }
        // Events tell of machines that were; whether others joined tells of the files. Fields of a kind
        // before Karpenter 0.32 have no places here.
        if object.input() != Input::Events && object.former_kind().is_none() {
            self.objects.push((object, text.into()));
        }
    }

    fn odd_fields(&mut self, object: &Object, odd: &[OddField], _: ObjectText<'_>) -> bool {
        if object.former_kind().is_none() {
            self.odd.insert(self.objects.len(), odd.to_vec());
        }
        true
    }

    fn may_hold_objects(&self, text: &str) -> bool {
        template::names_a_kind(text)
    }

    fn wants_file(&self, file: &str, begins: &str) -> bool {
        is_user_data(file, begins) || template::is_template(begins)
    }

    fn file(&mut self, file: &str, text: &str) {
        if !is_user_data(file, text) {
            self.templates.push(template::told(file, text));
            return;
        }
        self.user_data.push((file.to_owned(), text.to_owned()));
    }

    fn expects_only_objects(&self) -> bool {
        false
    }
}

fn is_user_data(file: &str, begins: &str) -> bool {
    !named(file, &SOURCE_CODE) && (named(file, &["sh", "toml", "ps1", "mime"]) || guess(begins).is_some())
}

/// Files in which user data is at most a text among others, so that nodewhy cannot tell where it begins.
const SOURCE_CODE: [&str; 10] = ["tf", "hcl", "py", "rb", "js", "ts", "go", "java", "rs", "md"];

fn named(file: &str, extensions: &[&str]) -> bool {
    Path::new(file)
        .extension()
        .is_some_and(|own| extensions.iter().any(|extension| own.eq_ignore_ascii_case(extension)))
}

/// The family with user data that begins like this. `None` if the text may be something else.
fn guess(text: &str) -> Option<Family> {
    let begins = text.trim_start();
    let for_shell = || if text.contains("bootstrap.sh") { Family::Al2 } else { Family::Al2023 };
    if begins.starts_with("#!") {
        Some(for_shell())
    } else if begins.starts_with("MIME-Version:") || begins.starts_with("Content-Type: multipart/") {
        Some(if text.contains("application/node.eks.aws") { Family::Al2023 } else { for_shell() })
    } else if begins.starts_with("<powershell>") || begins.starts_with("<script>") {
        Some(Family::Windows)
    } else if begins.starts_with("[settings") {
        Some(Family::Bottlerocket)
    } else if begins
        .lines()
        .find(|line| line.starts_with("apiVersion:"))
        .is_some_and(|line| line.contains(" node.eks.aws/"))
    {
        Some(Family::Al2023)
    } else {
        None
    }
}

/// Kind and name of an object that people write.
type Key = (String, String);

fn key(object: &Object) -> Option<Key> {
    let kind = match object {
        Object::NodeClass(class) if class.is_ec2() => "EC2NodeClass",
        Object::NodePool(_) => "NodePool",
        Object::NodeOverlay(_) => "NodeOverlay",
        Object::AwsAuth(map) if map.metadata.name == "aws-auth" => "ConfigMap",
        _ => return None,
    };
    Some((kind.to_owned(), object.meta().name.to_string()))
}

/// The kind of the blamed object, if the file itself is user data.
const USER_DATA: &str = "UserData";

/// Lints the files. `family` applies to files that are themselves user data.
pub fn lint(files: Files, family: Option<Family>) -> Report {
    let mut report = Report { looked_at: files.user_data.len(), templates: files.templates, ..Report::default() };
    report.upgrade = Upgrade::to(files.target);
    let v1 = files.objects.iter().filter(|(object, _)| former::is_v1(object));
    let of_v1: BTreeSet<String> = v1.map(|(_, piece)| piece.file.clone()).collect();
    for (version, objects) in &files.former {
        report.notes.push(former::told(version, objects));
        report.findings.extend(match files.target.karpenter {
            Some(karpenter) => former::not_served(version, objects, karpenter),
            None => former::beside_v1(version, objects, &of_v1),
        });
    }
    let mut ignores = ignore::Ignores::default();
    for (file, text) in &files.user_data {
        ignores.read(file, text, 1, &Blame::object("", USER_DATA, file));
        user_data_file(file, text, family, files.target.kubernetes, &mut report);
    }
    for mut cluster in clusters(files.objects, files.odd, &mut report.notes) {
        for answer in &files.aws {
            cluster.state.apply(Object::AwsObservation(answer.clone()), DateTime::UNIX_EPOCH);
        }
        for ((kind, name), piece) in &cluster.pieces {
            ignores.read(&piece.file, piece.text(), piece.line(), &Blame::object("", kind, name));
        }
        cluster.target = files.target;
        cluster.lint(&mut report);
    }
    ignores.apply(&mut report.findings);
    report.findings.sort_by(|a, b| (&a.file, a.line, a.column, &a.cause).cmp(&(&b.file, b.line, b.column, &b.cause)));
    report.findings.dedup_by(|a, b| {
        (&a.file, a.line, a.column, &a.cause, &a.blame) == (&b.file, b.line, b.column, &b.cause, &b.blame)
    });
    report
}

fn user_data_file(file: &str, text: &str, named_family: Option<Family>, kubernetes: Option<u32>, report: &mut Report) {
    let family = named_family.unwrap_or_else(|| {
        let by_name = || {
            let extensions = [("toml", Family::Bottlerocket), ("ps1", Family::Windows)];
            extensions.into_iter().find(|(extension, _)| named(file, &[extension])).map(|(_, family)| family)
        };
        let family = guess(text).or_else(by_name).unwrap_or(Family::Al2023);
        report.notes.push(format!(
            "{file}: read as user data of {family}, judged by how it begins or is named; --ami-family says otherwise"
        ));
        family
    });
    let blame = Blame::object("", USER_DATA, file);
    let mut data = userdata::read(text, family);
    if data.defects.iter().any(|defect| defect.kind == DefectKind::Template) {
        report.looked_at -= 1;
        report.templates.push(template::told(file, text));
        return;
    }
    data.defects.extend(data.contradictions(kubernetes, &BTreeMap::new()));
    if named_family.is_none() {
        leave_out_karpenters(file, &mut data, &mut report.notes);
    }
    let mut mistakes = of_user_data(&data, text, &blame, &mut report.notes);
    if kubernetes.is_some() {
        mistakes.extend(version::refused(&data, text, kubernetes, &format!("User data {file}"), &blame));
    }
    for mistake in mistakes {
        let (line, column) = mistake.within().unwrap_or((1, 1));
        let place = Place { line: line as usize, column: column as usize, exact: true };
        report.findings.push(mistake.at(file, place));
    }
}

/// Leaves out mistakes that are none in the user data of a launch template, which Karpenter does not change. A file does
/// not say whose it is.
fn leave_out_karpenters(file: &str, data: &mut UserData, notes: &mut Vec<String>) {
    use DefectKind::{BootstrapBeforeKarpenter, MimeUnreadable, NoInterpreter, OwnTags};
    let of_karpenter = [BootstrapBeforeKarpenter, MimeUnreadable, NoInterpreter, OwnTags];
    let all = data.defects.len();
    data.defects.retain(|defect| !of_karpenter.contains(&defect.kind));
    if data.defects.len() < all {
        notes.push(format!(
            "{file}: if this is the user data of a node class, and not of a launch template, --ami-family {} finds more",
            data.family
        ));
    }
}

/// Objects that belong together.
///
/// Usually all objects. If a name occurs twice, the objects of one folder or one file form a cluster.
fn clusters(
    objects: Vec<(Object, Piece)>,
    mut odd: BTreeMap<usize, Vec<OddField>>,
    notes: &mut Vec<String>,
) -> Vec<Cluster> {
    let folder = |file: &str| Path::new(file).parent().map(Path::to_path_buf).unwrap_or_default();
    let ways: [&dyn Fn(&str) -> PathBuf; 2] = [&|_| PathBuf::new(), &folder];
    let repeats = |way: &dyn Fn(&str) -> PathBuf| {
        let mut seen = BTreeSet::new();
        objects.iter().filter_map(|(object, piece)| Some((way(&piece.file), key(object)?))).any(|key| !seen.insert(key))
    };
    let way = ways.into_iter().find(|way| !repeats(way)).unwrap_or(&|file| PathBuf::from(file));
    let mut clusters: BTreeMap<PathBuf, Cluster> = BTreeMap::new();
    for (at, (mut object, piece)) in objects.into_iter().enumerate() {
        if let Object::NodeClass(class) = &mut object {
            named_images::suppose(class);
        }
        let cluster = clusters.entry(way(&piece.file)).or_default();
        let odd = odd.remove(&at);
        if let Object::AwsAuth(map) = &object
            && map.metadata.name == "aws-auth"
        {
            cluster.unread_auth = aws_auth::unread(map, &|field| piece.has(field));
        }
        if let Some(key) = key(&object) {
            if let Some(odd) = odd {
                cluster.odd.insert(key.clone(), odd);
            }
            cluster.pieces.insert(key, piece);
        } else {
            notes.extend(odd.iter().flatten().map(|field| odd_fields::note(&object, &piece, field)));
        }
        cluster.state.apply(object, DateTime::UNIX_EPOCH);
    }
    clusters.into_values().collect()
}

#[derive(Default)]
struct Cluster {
    state: ClusterState,
    pieces: BTreeMap<Key, Piece>,
    /// The fields that do not have their type.
    odd: BTreeMap<Key, Vec<OddField>>,
    /// Mistakes in parts of aws-auth that the authenticator does not read.
    unread_auth: Vec<Mistake>,
    /// What the user named. Of a live cluster, its own version of Kubernetes otherwise.
    target: Target,
    /// Whether this is a real cluster with all its objects, and not what files hold.
    is_live: bool,
}

impl Cluster {
    fn lint(mut self, report: &mut Report) {
        report.looked_at += self.pieces.len();
        if let Some(upgrade) = &mut report.upgrade {
            upgrade.look_at(&self.state);
        }
        if let Some(version) = self.target.karpenter {
            self.state.suppose_karpenter(version);
        }
        let now = self.state.newest_time().unwrap_or(DateTime::UNIX_EPOCH);
        let by_status = self.by_status(now);
        for mistake in self.mistakes(by_status, now, &mut report.notes, &|| ()) {
            let Blame { kind, name, field, .. } = &mistake.blame;
            let key = (kind.clone(), name.clone());
            // nodewhy knows nothing about a field that it could not read, so it does not call it missing either.
            let is_unread =
                |field: &str| self.odd.get(&key).into_iter().flatten().any(|odd| !odd.is_read && odd.touches(field));
            if let Some(piece) = self.pieces.get(&key)
                && !field.as_deref().is_some_and(is_unread)
            {
                let place = piece.place(field.as_deref(), mistake.within());
                report.findings.push(mistake.at(&piece.file, place));
            }
        }
        for (key, odd) in &self.odd {
            let Some(piece) = self.pieces.get(key) else { continue };
            let blame = Blame::object("", &key.0, &key.1);
            for (mistake, place) in odd_fields::flaws(&blame, piece, odd, &mut report.notes) {
                report.findings.push(mistake.at(&piece.file, place));
            }
        }
        for (key, piece) in &self.pieces {
            let Some(object) = piece.value() else { continue };
            let blame = Blame::object("", &key.0, &key.1);
            let told: Vec<String> = report
                .findings
                .iter()
                .filter(|finding| finding.blame.object == blame.object && finding.file == piece.name())
                .filter_map(|finding| finding.blame.field.clone())
                .collect();
            let is_told = |field: &str| told.iter().any(|own| odd::touch(own, field));
            let mut flaws = schema::flaws(&blame, &object, piece, &is_told);
            let is_refused = |field: &str| flaws.iter().any(|(own, _)| own.blame.field.as_deref() == Some(field));
            let of_schedules = schedule::flaws(&blame, &object, piece, &|field| is_told(field) || is_refused(field));
            flaws.extend(of_schedules);
            flaws.extend(overlay::version(&blame, &object, piece));
            report.findings.extend(flaws.into_iter().map(|(mistake, place)| mistake.at(&piece.file, place)));
        }
    }

    /// All mistakes of the objects, after those that are known. Calls `tells` after each node class.
    fn mistakes(
        &mut self,
        known: Vec<Mistake>,
        now: DateTime<Utc>,
        notes: &mut Vec<String>,
        tells: &dyn Fn(),
    ) -> Vec<Mistake> {
        let mut mistakes = known;
        let classes: Vec<String> =
            self.state.classes().filter(|c| c.class.is_ec2()).map(|c| c.class.name().to_owned()).collect();
        for class in classes {
            mistakes.extend(self.of_class(&class, now, notes));
            tells();
        }
        mistakes.extend(self.state.pools().flat_map(|pool| self.of_pool(pool)));
        mistakes.extend(self.of_overlays());
        mistakes.append(&mut self.unread_auth);
        mistakes.extend(self.of_kinds());
        let own: Vec<Mistake> =
            self.of_aws_auth().into_iter().filter(|own| !mistakes.iter().any(|rule| rule.explains(own))).collect();
        mistakes.extend(own);
        // Something fills in what a file leaves open. In a cluster it is too late for that.
        mistakes.retain(|own| self.is_live || own.blame.kind != "ConfigMap" || !own.message.contains("${"));
        mistakes
    }

    /// Mistakes of node classes and NodePools with a status, in the files, that says that nothing can be launched.
    fn by_status(&self, now: DateTime<Utc>) -> Vec<Mistake> {
        let subjects = self.state.classes_and_pools();
        let thresholds = Thresholds::default();
        let judging = Judging::new(&self.state, now, &thresholds);
        let cases = subjects.filter_map(|subject| Case::of(judging, &subject));
        cases.filter(Case::is_overdue).flat_map(|case| by_rules(&case)).collect()
    }

    /// Mistakes that would hurt machines of this class.
    fn of_class(&mut self, name: &str, now: DateTime<Utc>, notes: &mut Vec<String>) -> Vec<Mistake> {
        let Some(class) = self.state.class("EC2NodeClass", name) else { return Vec::new() };
        let spec = &class.class.spec;
        if class.user_data.is_none() && spec.user_data.is_some() {
            notes.push(format!(
                "EC2NodeClass {name}: its userData is not read, for neither amiFamily nor an alias tells the family"
            ));
        }
        let pools: Vec<Option<&NodePool>> =
            self.state.pools().filter(|pool| is_of(pool, &class.class)).map(Some).collect();
        let pools = if pools.is_empty() { vec![None] } else { pools };
        let images: Vec<&str> = machine::images(class).into_iter().map(|image| image.id.as_str()).collect();
        let images = if images.is_empty() { vec![""] } else { images };
        let mut machines = Vec::new();
        for pool in pools {
            machines.extend(machine::launching(class, pool, now).map(|claim| (claim, None)));
            machines.extend(images.iter().map(|image| (machine::joining(class, pool, image, now), None)));
            machines.extend(
                machine::untainted(class, pool, self.state.karpenter(), now).map(|(claim, node)| (claim, Some(node))),
            );
        }
        let mut mistakes = self.of_images(class);
        let own = [cluster_dns::flaw(&class.class), max_pods::flaw(&class.class)];
        let karpenter = self.state.karpenter().map(|karpenter| karpenter.version);
        let fields = volumes::flaws(&class.class).into_iter().chain(kubelet::flaws(&class.class, karpenter));
        let fields = fields.chain(ids::flaws(&class.class));
        mistakes.extend(fields.chain(own.into_iter().flatten()).map(|flaw| Mistake {
            level: if flaw.fatal { Level::Error } else { Level::Warning },
            cause: flaw.cause.to_owned(),
            message: flaw.message,
            fix: Some(flaw.fix),
            blame: Blame::object(&class.class.api_version, "EC2NodeClass", name).field(flaw.field),
            grave: false,
        }));
        let (mut joined, mut joined_this_version) = (false, false);
        let thresholds = Thresholds::default();
        for (claim, node) in machines {
            let machine = claim.name().to_owned();
            let has_node = node.is_some();
            self.state.apply(Object::NodeClaim(claim), now);
            if let Some(node) = node {
                self.state.apply(Object::Node(node), now);
            }
            let judging = Judging::new(&self.state, now, &thresholds);
            if let Some(case) = Case::of(judging, &Subject::Claim(machine.clone())) {
                mistakes.extend(by_rules(&case));
                joined |= case.same_spec_sibling_joined().is_some();
                joined_this_version |= match (self.target.kubernetes, case.class()) {
                    (None, _) => true,
                    // Files may hold a Node without its version.
                    (Some(minor), Some(class)) if self.is_live => {
                        kubelet_version::joined_since(&case, class, minor).is_some()
                    }
                    _ => false,
                };
            }
            self.state.remove(Input::NodeClaims, None, &machine);
            if has_node {
                self.state.remove(Input::Nodes, None, &machine);
            }
        }
        let Some(facts) = self.state.class("EC2NodeClass", name) else { return mistakes };
        // One that joined had the kubelet of its day, which may be older than the version that is asked about.
        let of_version = version::mistakes(facts, self.target.kubernetes).into_iter();
        mistakes.extend(of_version.filter(|own| !(joined && joined_this_version && own.grave)));
        let pools: Vec<&NodePool> = self.state.pools().filter(|pool| is_of(pool, &facts.class)).collect();
        mistakes.extend(overridden::mistakes(facts, &pools));
        let dropped = overridden::dropped_taints(facts).filter(|_| pools.is_empty() && !self.is_live);
        let dropped = dropped.filter(|own| !mistakes.iter().any(|rule| rule.explains(own)));
        mistakes.extend(dropped);
        if let (Some(data), Some(text)) = (&facts.user_data, &facts.class.spec.user_data) {
            let blame = Blame::object(&facts.class.api_version, "EC2NodeClass", name).field("spec.userData");
            let own = of_user_data(data, text, &blame, notes);
            // A machine that joined knows better.
            let told = |own: &Mistake| (joined && own.grave) || mistakes.iter().any(|rule| rule.explains(own));
            let own: Vec<Mistake> = own.into_iter().filter(|own| !told(own)).collect();
            mistakes.extend(own);
        }
        mistakes
    }

    /// Images that new nodes would get, and that EC2 does not launch.
    fn of_images(&self, class: &ClassFacts) -> Vec<Mistake> {
        let mistake = |ami: &Ami| {
            let told = || self.state.aws().image(&ami.id);
            let (rule, field, message) = rules::preflight(told(), &class.class, ami, self.state.karpenter())?;
            // One that is pending may be available in a minute, and one that EC2 does not know may be another
            // account's.
            let gone =
                told().known().is_some_and(|(image, _)| !matches!(image.state.as_str(), "pending" | "transient"));
            Some(Mistake {
                level: if gone { Level::Error } else { Level::Warning },
                cause: rule.cause.to_owned(),
                message,
                fix: None,
                blame: Blame::object(&class.class.api_version, &class.class.kind, class.class.name()).field(field),
                grave: false,
            })
        };
        // Images that AWS has just returned have no requirements yet, so each one may be chosen.
        let chosen = machine::images(class);
        let is_asked = |ami: &&Ami| ami.requirements.is_empty() || chosen.iter().any(|own| own.id == ami.id);
        class.class.status.amis.iter().filter(is_asked).filter_map(mistake).collect()
    }

    /// Mistakes of a NodePool that do not depend on the requested machine.
    fn of_pool(&self, pool: &NodePool) -> Vec<Mistake> {
        let reference = &pool.spec.template.spec.node_class_ref;
        if let Some(flaw) = kinds::foreign_kind(pool) {
            return vec![of_flaw(flaw, Blame::object("karpenter.sh/v1", "NodePool", pool.name()))];
        }
        if reference.kind != "EC2NodeClass" {
            return Vec::new();
        }
        let blame = || Blame::object("karpenter.sh/v1", "NodePool", pool.name());
        let mistake = |level, cause: &str, message, fix, field: String| Mistake {
            level,
            cause: cause.to_owned(),
            message,
            fix: Some(fix),
            blame: blame().field(field),
            grave: false,
        };
        let launched = self.state.claims_of_pool(pool.name()).any(|claim| claim.is_true("Launched"));
        let mut mistakes: Vec<Mistake> = requirements::flaws(pool, launched)
            .into_iter()
            .chain(requirements::taints_twice(pool))
            .chain(contradictions::flaws(
                pool,
                self.state.class("EC2NodeClass", &reference.name).map(|facts| &facts.class),
                self.state.claims_of_pool(pool.name()).next().is_some(),
                self.state.daemon_sets(),
            ))
            .map(|flaw| {
                let level = if flaw.fatal { Level::Error } else { Level::Warning };
                mistake(level, flaw.cause, flaw.message, flaw.fix, flaw.field)
            })
            .collect();
        let mut names: Vec<&str> =
            self.state.classes().map(|facts| &facts.class).filter(|c| c.is_ec2()).map(NodeClass::name).collect();
        let name = reference.name.as_str();
        // Karpenter finds the class by kind and group, and the one of another group is not its own.
        // karpenter v1.14.1 pkg/utils/nodepool/nodepool.go IsManaged
        if !matches!(reference.group.as_str(), "" | "karpenter.k8s.aws") && !userdata::has_expansion(&reference.group) {
            mistakes.push(mistake(
                Level::Error,
                "ForeignNodeClassRef",
                format!(
                    "NodePool {} names an EC2NodeClass of the group {:?}, which Karpenter has not.",
                    pool.name(),
                    reference.group
                ),
                "Write group: karpenter.k8s.aws.".to_owned(),
                "spec.template.spec.nodeClassRef.group".to_owned(),
            ));
        }
        // Files without any class leave the classes to other files. In a cluster none may be missed.
        let are_all_here = !names.is_empty() || self.is_live;
        let are_read = !self.is_live || self.state.missing(Input::NodeClasses).is_none();
        if are_all_here && are_read && !names.contains(&name) && !userdata::has_expansion(name) {
            names.sort_unstable();
            let whose = if self.is_live { "which the cluster does not have" } else { "which is not among these files" };
            let fix = match (self.is_live, names.is_empty()) {
                (_, true) => "Create the EC2NodeClass.".to_owned(),
                (true, false) => format!("The cluster has: {}.", names.join(", ")),
                (false, false) => format!("These are: {}.", names.join(", ")),
            };
            mistakes.push(mistake(
                Level::Warning,
                "DanglingNodeClassRef",
                format!("NodePool {} names the EC2NodeClass {name}, {whose}.", pool.name()),
                fix,
                "spec.template.spec.nodeClassRef.name".to_owned(),
            ));
        }
        mistakes
    }

    fn of_overlays(&self) -> Vec<Mistake> {
        let mut mistakes = Vec::new();
        for overlay in self.state.node_overlays() {
            let blame = Blame::object("karpenter.sh/v1alpha1", "NodeOverlay", overlay.name());
            mistakes.extend(overlay::flaws(overlay).into_iter().map(|flaw| of_flaw(flaw, blame.clone())));
        }
        mistakes
    }

    /// Groups that do not have the kind, and fields that v1 does not have.
    fn of_kinds(&self) -> Vec<Mistake> {
        let pools = self.state.pools().flat_map(|pool| {
            let has = |field: &str| {
                self.pieces.get(&("NodePool".to_owned(), pool.name().to_owned())).is_some_and(|piece| piece.has(field))
            };
            let flaws = kinds::group("NodePool", pool.name(), &pool.api_version).into_iter();
            let flaws = flaws.chain(kinds::fields(pool, &has)).collect::<Vec<_>>();
            flaws.into_iter().map(move |flaw| of_flaw(flaw, Blame::object(&pool.api_version, "NodePool", pool.name())))
        });
        let classes = self.state.classes().map(|facts| &facts.class).filter(|class| class.is_ec2());
        let classes = classes.filter_map(|class| {
            let flaw = kinds::group("EC2NodeClass", class.name(), &class.api_version)?;
            Some(of_flaw(flaw, Blame::object(&class.api_version, "EC2NodeClass", class.name())))
        });
        pools.chain(classes).collect()
    }

    /// Whether a node with this role joined after aws-auth was last written. Something else then authorizes it.
    fn joined_with(&self, role: &str, auth: &AwsAuthFacts) -> bool {
        let written = auth.written.as_ref().map(|written| written.at);
        let classes = self.state.classes().map(|facts| &facts.class);
        let mut of_role = classes.filter(|class| class.spec.role.as_deref().map(aws_auth::role_name) == Some(role));
        of_role.any(|class| {
            let members = self.state.class_members(&class.kind, class.name());
            members.and_then(ClassMembers::last_joined).is_some_and(|(at, _)| Some(*at) > written)
        })
    }

    fn of_aws_auth(&self) -> Vec<Mistake> {
        let Some(auth) = self.state.aws_auth() else { return Vec::new() };
        let by_entry = aws_auth::entries(auth, &|role| self.is_live && self.joined_with(role, auth));
        let with_text = auth.read.defects.iter().filter_map(|defect| match defect.key {
            DataKey::MapRoles => Some((defect, &auth.map_roles)),
            DataKey::MapUsers => Some((defect, &auth.map_users)),
            DataKey::MapAccounts => None,
        });
        with_text
            .take(MOST)
            .map(|(defect, text)| Mistake {
                level: Level::Warning,
                cause: format!("{:?}", defect.kind),
                message: format!("ConfigMap aws-auth, {}: {}.", defect.key, defect.message.trim_end_matches('.')),
                fix: None,
                blame: Blame::object("v1", "ConfigMap", "aws-auth")
                    .namespace("kube-system")
                    .field(format!("data.{}", defect.key))
                    .at(text, defect.span),
                grave: false,
            })
            .chain(by_entry)
            .collect()
    }
}

fn of_flaw(flaw: flaw::Flaw, blame: Blame) -> Mistake {
    Mistake {
        level: if flaw.fatal { Level::Error } else { Level::Warning },
        cause: flaw.cause.to_owned(),
        message: flaw.message,
        fix: Some(flaw.fix),
        blame: blame.field(flaw.field),
        grave: false,
    }
}

fn is_of(pool: &NodePool, class: &NodeClass) -> bool {
    let reference = &pool.spec.template.spec.node_class_ref;
    reference.kind == class.kind && reference.name == class.name()
}

/// Maximum number of findings in one text. Finding each place reads the text again.
const MOST: usize = 100;

/// A finding whose place in the files is not yet known.
struct Mistake {
    level: Level,
    cause: String,
    message: String,
    fix: Option<String>,
    blame: Blame,
    /// It keeps machines from joining.
    grave: bool,
}

impl Mistake {
    fn within(&self) -> Option<(u32, u32)> {
        self.blame.line.zip(self.blame.column)
    }

    /// Whether this finding of a rule lies within the place of `own`, a finding of a reader, and so replaces it.
    fn explains(&self, own: &Self) -> bool {
        let place = |blame: &Blame| (blame.object.clone(), blame.field.clone(), blame.line);
        let columns = |blame: &Blame| {
            let start = blame.column.unwrap_or_default();
            start..=start.saturating_add(blame.length.unwrap_or_default())
        };
        let (rule, own) = (&self.blame, &own.blame);
        place(rule) == place(own)
            && columns(own).contains(columns(rule).start())
            && columns(own).contains(columns(rule).end())
    }

    fn at(self, file: &str, place: Place) -> LintFinding {
        let is_cause = rules::by_cause(&self.cause).is_some();
        let fix = self.fix.or_else(|| page::fix(&self.cause));
        LintFinding {
            file: file.strip_prefix("./").unwrap_or(file).to_owned(),
            line: place.line,
            column: place.column,
            exact: place.exact,
            level: self.level,
            documentation: if is_cause {
                Some(rules::documentation(&self.cause))
            } else {
                page::page(&self.cause).map(|_| page::documentation(&self.cause))
            },
            cause: self.cause,
            message: source_text::mask(&self.message),
            fix,
            blame: self.blame,
        }
    }
}

/// The findings of the rules that need only the text of the objects.
fn by_rules(case: &Case) -> Vec<Mistake> {
    // A failed launch has one reason, whichever rule finds it. Other findings follow from it.
    let is_launch = case.stage() == Stage::Launch;
    let most = if is_launch { 1 } else { usize::MAX };
    let told = diagnose::findings(case, |rule| is_launch || rule.lint);
    let told = told.into_iter().take(most).filter(|(rule, _)| rule.lint);
    told.filter_map(|(rule, finding)| {
        let blame = finding.blame?;
        // Beside a flawed entry of aws-auth there may be an access entry.
        let (confidence, unless) = match blame.kind.as_str() {
            "ConfigMap" => {
                (finding.confidence.min(Confidence::Likely), " An access entry for the role would make up for it.")
            }
            _ => (finding.confidence, ""),
        };
        let level = match confidence {
            Confidence::Certain => Level::Error,
            Confidence::Likely => Level::Warning,
            Confidence::Possible => return None,
        };
        let fix = Some(finding.fix.to_string()).filter(|fix| !fix.is_empty());
        Some(Mistake {
            level,
            cause: rule.cause.to_owned(),
            message: finding.summary + unless,
            fix,
            blame: *blame,
            grave: level == Level::Error,
        })
    })
    .collect()
}

/// A message as a sentence. The name of a setting keeps its first letter: `settings.kubernetes`, `cloud-init`.
fn sentence(message: &str) -> String {
    let message = message.trim_end_matches('.');
    let word = message.split(' ').next().unwrap_or_default();
    let Some(first) = message.chars().next().filter(|_| !word.contains(['.', '-', '_', '/'])) else {
        return format!("{message}.");
    };
    format!("{}{}.", first.to_uppercase(), &message[first.len_utf8()..])
}

/// Mistakes and lost arguments that the reader of user data finds.
fn of_user_data(data: &UserData, text: &str, blame: &Blame, notes: &mut Vec<String>) -> Vec<Mistake> {
    let told = |span, cause: String, message: &str, level, grave| Mistake {
        level,
        cause,
        message: sentence(message),
        fix: None,
        blame: blame.clone().at(text, span),
        grave,
    };
    let mut mistakes = Vec::new();
    for defect in data.defects.iter().take(MOST) {
        let (level, grave) = match defect.consequence(data.family) {
            Consequence::NoLaunch | Consequence::NoJoin => (Level::Error, true),
            Consequence::Lost => (Level::Warning, false),
            Consequence::Unknown => {
                let line = source_text::position(text, defect.span.start).line;
                notes.push(format!(
                    "{}, line {line} of its user data is not judged: {}",
                    blame.object,
                    source_text::mask(&defect.message)
                ));
                continue;
            }
        };
        mistakes.push(told(defect.span, format!("{:?}", defect.kind), &defect.message, level, grave));
    }
    if data.defects.len() > MOST {
        notes.push(format!("{}: only the first {MOST} mistakes in its user data are listed", blame.object));
    }
    let mut losses = BTreeSet::new();
    let call_told = data.defects.iter().any(|defect| defect.kind == DefectKind::NeverReached);
    for argument in data.lost() {
        // The other losses have a defect that tells them.
        if let Fate::Lost(loss @ (Loss::LooseWord | Loss::RepeatedOption | Loss::AfterExit)) = argument.fate
            && !(call_told && loss == Loss::AfterExit)
            && losses.insert(format!("{loss:?}"))
        {
            let message = format!("--{} never reaches the kubelet: {loss}", argument.name());
            mistakes.push(told(argument.span, format!("{loss:?}"), &message, Level::Warning, false));
        }
    }
    mistakes
}
