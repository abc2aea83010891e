//! The declaration of an experiment, as its file has it.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, ensure};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

/// An experiment: a question, the systems that are asked, and the loads that ask them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Experiment {
    pub(crate) title: String,
    pub(crate) question: String,
    /// The source that it repeats.
    #[serde(default)]
    pub(crate) source: String,
    /// Its method and its reading, in Markdown.
    #[serde(default)]
    pub(crate) text: String,
    /// Its findings, in Markdown: `{CASE CONTESTANT FIGURE PARAMETER=VALUE .DECIMALS}` stands for
    /// a median.
    #[serde(default)]
    pub(crate) summary: String,
    /// Interleaved rounds of each case.
    #[serde(default = "default_rounds")]
    pub(crate) rounds: u32,
    /// The value of `{seconds}`.
    #[serde(default = "default_seconds")]
    pub(crate) seconds: f64,
    /// The cores of the loads, as `taskset` writes them.
    #[serde(default = "default_load_cores")]
    pub(crate) load_cores: String,
    /// The cores of servers that say nothing else.
    #[serde(default = "default_server_cores")]
    pub(crate) cores: String,
    /// The response without which a server is not measured.
    pub(crate) check: Option<Check>,
    /// Words for placeholders.
    #[serde(default)]
    pub(crate) vars: BTreeMap<String, String>,
    /// Those that a quick run replaces.
    #[serde(default)]
    pub(crate) quick_vars: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) services: BTreeMap<String, Service>,
    pub(crate) contestants: IndexMap<String, Contestant>,
    /// Figures of all cases that are computed of others; a case's own come first.
    #[serde(default)]
    pub(crate) derive: BTreeMap<String, String>,
    /// The columns of cases that have none of their own.
    #[serde(default)]
    pub(crate) columns: Vec<Column>,
    pub(crate) cases: Vec<Case>,
}

/// A request and what its response must be.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    pub(crate) path: String,
    #[serde(default = "default_status")]
    pub(crate) status: u16,
    /// A part of the body; its whitespace at both ends does not matter.
    #[serde(default)]
    pub(crate) contains: String,
}

/// A program that runs beside each contestant.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Service {
    pub(crate) build: Option<String>,
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    pub(crate) start: String,
    #[serde(default = "default_load_cores")]
    pub(crate) cores: String,
}

/// A system that is measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contestant {
    /// Its name in tables; that of its table in the file by default.
    #[serde(default)]
    pub(crate) label: String,
    pub(crate) build: Option<String>,
    #[serde(default)]
    pub(crate) builds: Vec<String>,
    /// Programs that must be installed.
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    /// The command that prints its version, if its build does not know it.
    pub(crate) version: Option<String>,
    /// The server's command; without one, its loads are commands.
    pub(crate) start: Option<String>,
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    /// The experiment's by default.
    pub(crate) cores: Option<String>,
    /// Runs a second time in each round, to show the difference between equals.
    #[serde(default)]
    pub(crate) again: bool,
    #[serde(default = "default_start_seconds")]
    pub(crate) start_seconds: u64,
    pub(crate) check: Option<Check>,
    /// Words for placeholders.
    #[serde(default)]
    pub(crate) vars: BTreeMap<String, String>,
}

/// One load on all contestants, perhaps with several values of its parameters.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) text: String,
    /// Those that take part; all by default.
    #[serde(default)]
    pub(crate) contestants: Vec<String>,
    pub(crate) rounds: Option<u32>,
    /// Rounds of single contestants, where they differ from the case's.
    #[serde(default)]
    pub(crate) rounds_of: BTreeMap<String, u32>,
    /// The cores of all servers.
    pub(crate) cores: Option<String>,
    /// The value of `{seconds}` in this case.
    pub(crate) seconds: Option<f64>,
    pub(crate) load_cores: Option<String>,
    /// The niceness of the loads where the kernel allows it; figure `load_niceness` has what it
    /// was.
    pub(crate) load_niceness: Option<i32>,
    /// Words for placeholders, which contestants may have otherwise.
    #[serde(default)]
    pub(crate) vars: BTreeMap<String, String>,
    /// The response that is checked here, instead of the experiment's.
    pub(crate) check: Option<Check>,
    /// Names of parameters and their values.
    #[serde(default)]
    pub(crate) over: BTreeMap<String, Vec<f64>>,
    pub(crate) steps: Vec<Step>,
    /// Figures that are computed of others.
    #[serde(default)]
    pub(crate) derive: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) columns: Vec<Column>,
    #[serde(default)]
    pub(crate) goals: Vec<Goal>,
    #[serde(default)]
    pub(crate) plots: Vec<Plot>,
}

/// Loads that run at the same time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    /// The prefix of the server's own figures.
    #[serde(default = "default_step")]
    pub(crate) name: String,
    /// Starts the server anew before.
    #[serde(default)]
    pub(crate) fresh: bool,
    pub(crate) loads: Vec<Load>,
    /// A signal to the server in the midst of them; it may end by it.
    pub(crate) signal: Option<SignalAt>,
    /// True if its loads end the server.
    #[serde(default)]
    pub(crate) ends_server: bool,
}

/// A signal, and its time from the step's begin.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalAt {
    /// `HUP`, `INT`, `TERM` or `USR2`.
    pub(crate) name: String,
    pub(crate) after_seconds: f64,
}

/// A load: of requests, of ab, or of any program that prints its figures.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Load {
    pub(crate) name: String,
    /// The contestants that it is made for; all by default.
    #[serde(default)]
    pub(crate) only: Vec<String>,
    /// The arguments of ab.
    pub(crate) ab: Option<String>,
    /// The arguments of `greenroom bench`, the contestant's `{greenroom}`.
    pub(crate) bench: Option<String>,
    /// A program whose last line is one JSON object of numbers.
    pub(crate) command: Option<String>,
    /// The time after which ab or the command is killed; 180 by default.
    pub(crate) limit_seconds: Option<u64>,
    /// The path of requests at the contestant.
    pub(crate) path: Option<String>,
    /// The whole URL of requests, if they go elsewhere.
    pub(crate) url: Option<String>,
    /// A file of URLs of one server, a line each, that take turns.
    pub(crate) urls: Option<String>,
    #[serde(default = "default_method")]
    pub(crate) method: String,
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) body: String,
    /// Requests per second of an open loop; without it, the loop is closed.
    pub(crate) rate: Option<Number>,
    /// The rate at its begin, from which it rises evenly.
    pub(crate) ramp_from: Option<Number>,
    /// Rates one after the other, instead of `rate` and `seconds`.
    #[serde(default)]
    pub(crate) stages: Vec<Stage>,
    pub(crate) seconds: Option<Number>,
    /// Stretches of time, in seconds from the begin, with figures of their own: of window `w`
    /// `w.ok_rate`, `w.p50_ms`, `w.p99_ms` and `w.max_ms`, of what ended in it, to 0.25 s and 1 %.
    #[serde(default)]
    pub(crate) windows: BTreeMap<String, [Number; 2]>,
    pub(crate) requests: Option<Number>,
    pub(crate) connections: Option<Number>,
    #[serde(default = "default_keep_alive")]
    pub(crate) keep_alive: bool,
    #[serde(default)]
    pub(crate) http2: bool,
    /// Addresses from 127.0.0.2 on that connections come from, in turn.
    pub(crate) sources: Option<u8>,
    /// Requests in flight on each connection.
    pub(crate) in_flight: Option<Number>,
    pub(crate) timeout_seconds: Option<Number>,
}

/// A constant rate of an open loop for some time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stage {
    pub(crate) rate: Number,
    pub(crate) seconds: Number,
}

/// A number, or an expression over figures and parameters.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Number {
    Value(f64),
    Expression(String),
}

/// A column of a case's table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Column {
    pub(crate) figure: String,
    #[serde(default)]
    pub(crate) label: String,
    #[serde(default)]
    pub(crate) decimals: usize,
    /// The contestant whose multiple it is shown as, too.
    pub(crate) beside: Option<String>,
    /// The contestant from whose figure its distance is shown, too.
    pub(crate) minus: Option<String>,
    /// The numbers that the source printed, by contestant.
    #[serde(default)]
    pub(crate) printed: BTreeMap<String, String>,
}

/// A bound of a figure's median, or of its worst round.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Goal {
    pub(crate) contestant: String,
    /// Further contestants with the same goal.
    #[serde(default, skip_serializing)]
    pub(crate) also: Vec<String>,
    pub(crate) figure: String,
    pub(crate) at_most: Option<f64>,
    pub(crate) at_least: Option<f64>,
    /// The contestant of which it must be a multiple.
    pub(crate) beside: Option<String>,
    /// The contestant of which it must be a distance.
    pub(crate) minus: Option<String>,
    /// Judges the worst round instead of the median.
    #[serde(default)]
    pub(crate) worst: bool,
    /// The parameters at which it is judged; all by default.
    #[serde(default, rename = "where")]
    pub(crate) only: BTreeMap<String, f64>,
}

/// A picture.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Plot {
    /// Response time against the rate that was asked for.
    Rate { title: String, load: String },
    /// A figure's median against a parameter, a line for each contestant.
    Sweep {
        title: String,
        x: String,
        figure: String,
        #[serde(default)]
        label: String,
    },
}

impl Experiment {
    /// Reads and checks a file.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("{name}"))?;
        let mut experiment = parse(&text).with_context(|| format!("{name}"))?;
        for case in &mut experiment.cases {
            case.goals = case.goals.iter().flat_map(Goal::each).collect();
        }
        for (key, contestant) in &mut experiment.contestants {
            if contestant.label.is_empty() {
                contestant.label.clone_from(key);
            }
        }
        experiment.complete();
        experiment.validate().with_context(|| format!("{name}"))?;
        Ok(experiment)
    }

    /// Gives each case what it has not said itself.
    fn complete(&mut self) {
        for case in &mut self.cases {
            if case.columns.is_empty() {
                case.columns.clone_from(&self.columns);
            }
            for (name, expression) in &self.derive {
                let own = case.derive.entry(name.clone());
                own.or_insert_with(|| expression.clone());
            }
        }
    }

    /// Returns the names of its contestants.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.contestants.keys().map(String::as_str).collect()
    }

    fn validate(&self) -> anyhow::Result<()> {
        for case in &self.cases {
            let known = |name: &String| self.contestants.contains_key(name);
            let goals = case.goals.iter();
            let named = case
                .contestants
                .iter()
                .chain(goals.map(|goal| &goal.contestant));
            let beside = case
                .columns
                .iter()
                .flat_map(|column| column.beside.iter().chain(&column.minus));
            let loads = case.steps.iter().flat_map(|step| &step.loads);
            let only = loads.flat_map(|load| &load.only);
            let rounds_of = case.rounds_of.keys();
            for name in named.chain(beside).chain(only).chain(rounds_of) {
                ensure!(
                    known(name),
                    "case {:?}: there is no contestant {name:?}",
                    case.name
                );
            }
            for load in case.steps.iter().flat_map(|step| &step.loads) {
                let programs = [&load.ab, &load.bench, &load.command];
                let requests = [&load.path, &load.url, &load.urls];
                let kinds = programs.into_iter().chain(requests);
                let count = kinds.filter(|kind| kind.is_some()).count();
                ensure!(
                    count == 1,
                    "case {:?}: load {:?} must have one of path, url, urls, ab, bench and command",
                    case.name,
                    load.name
                );
            }
        }
        Ok(())
    }
}

/// Parses a declaration. A contestant or a case that is `like` another one before it has all of
/// that one's keys that it lacks, but `again`.
fn parse(text: &str) -> anyhow::Result<Experiment> {
    let mut document: Table = toml::from_str(text)?;
    let mut inherits = false;
    if let Some(Value::Table(contestants)) = document.get_mut("contestants") {
        let mut done = Table::new();
        for (name, contestant) in std::mem::take(contestants) {
            let find = |like: &str| done.get(like);
            let (contestant, has) = inherited(contestant, find)?;
            inherits |= has;
            done.insert(name, contestant);
        }
        *contestants = done;
    }
    if let Some(Value::Array(cases)) = document.get_mut("cases") {
        let mut done: Vec<Value> = Vec::new();
        for case in std::mem::take(cases) {
            let name = |case: &Value| Some(case.get("name")?.as_str()?.to_owned());
            let find = |like: &str| done.iter().find(|case| name(case).as_deref() == Some(like));
            let (case, has) = inherited(case, find)?;
            inherits |= has;
            done.push(case);
        }
        *cases = done;
    }
    // Errors in the text itself tell their line.
    Ok(if inherits {
        document.try_into()?
    } else {
        toml::from_str(text)?
    })
}

/// Returns a value with all that it inherits, and whether it does.
fn inherited<'a>(
    mut value: Value,
    find: impl Fn(&str) -> Option<&'a Value>,
) -> anyhow::Result<(Value, bool)> {
    let Some(own) = value.as_table_mut() else {
        return Ok((value, false));
    };
    let Some(like) = own.remove("like") else {
        return Ok((value, false));
    };
    let like = like.as_str().context("`like` must be a name")?;
    let other = find(like).and_then(Value::as_table);
    let other = other.with_context(|| format!("there is no {like:?} before"))?;
    for (key, theirs) in other.iter().filter(|(key, _)| *key != "again") {
        own.entry(key.clone()).or_insert_with(|| theirs.clone());
    }
    Ok((value, true))
}

impl Goal {
    /// Returns a goal for each of its contestants.
    fn each(&self) -> Vec<Self> {
        let of = |contestant: &String| Self {
            contestant: contestant.clone(),
            also: Vec::new(),
            ..self.clone()
        };
        std::iter::once(&self.contestant)
            .chain(&self.also)
            .map(of)
            .collect()
    }
}

impl Step {
    /// Returns the step with the loads that are made for a contestant.
    pub(crate) fn of(&self, contestant: &str) -> Self {
        let mut own = self.clone();
        own.loads
            .retain(|load| load.only.is_empty() || load.only.iter().any(|one| one == contestant));
        own
    }
}

impl Case {
    /// Returns each combination of its parameters' values; one without any if it has none.
    pub(crate) fn combinations(&self) -> Vec<BTreeMap<String, f64>> {
        let mut all = vec![BTreeMap::new()];
        for (name, values) in &self.over {
            let with = |combination: &BTreeMap<String, f64>| {
                let extended = |value: &f64| {
                    let mut combination = combination.clone();
                    combination.insert(name.clone(), *value);
                    combination
                };
                values.iter().map(extended).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(with).collect();
        }
        all
    }
}

fn default_rounds() -> u32 {
    5
}

fn default_seconds() -> f64 {
    3.0
}

fn default_load_cores() -> String {
    "1".to_owned()
}

fn default_server_cores() -> String {
    "0".to_owned()
}

fn default_start_seconds() -> u64 {
    10
}

fn default_status() -> u16 {
    200
}

fn default_step() -> String {
    "server".to_owned()
}

fn default_method() -> String {
    "GET".to_owned()
}

fn default_keep_alive() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "title = \"t\"\nquestion = \"q\"\n";

    #[test]
    fn what_is_like_another_has_what_it_lacks() {
        let text = format!(
            "{HEAD}[contestants.a]\nstart = \"a\"\ncores = \"1\"\nagain = true\n[contestants.b]\n\
             like = \"a\"\nstart = \"b\"\n[[cases]]\nname = \"one\"\nsteps = []\ncolumns = []\n\
             [[cases.goals]]\ncontestant = \"a\"\nalso = [\"b\"]\nfigure = \"x\"\n\
             [[cases]]\nname = \"two\"\nlike = \"one\"\nrounds = 2\n"
        );
        let experiment = parse(&text).expect("valid");
        let b = &experiment.contestants["b"];
        assert_eq!(
            (b.start.as_deref(), b.cores.as_deref()),
            (Some("b"), Some("1"))
        );
        assert!(!b.again);
        let two = &experiment.cases[1];
        assert_eq!((two.rounds, two.goals.len()), (Some(2), 1));
        let judged: Vec<_> = two.goals[0]
            .each()
            .into_iter()
            .map(|goal| goal.contestant)
            .collect();
        assert_eq!(judged, ["a", "b"]);
    }

    #[test]
    fn nothing_is_like_what_comes_later() {
        let text = format!("{HEAD}[contestants.b]\nlike = \"a\"\n[contestants.a]\n");
        let error = parse(&text).expect_err("no such").to_string();
        assert!(error.contains("\"a\""), "{error}");
    }
}
