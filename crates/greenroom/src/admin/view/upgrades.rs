use greenroom_server::{
    UpgradeProgram, UpgradeRecord, UpgradeResult, UpgradeState, UpgradeStatus, UpgradeWay,
};

use super::format::{count, micros, seconds};
use super::{Block, Column, Fact, Facts, Section, Table, Value};
use crate::Status;

/// The text of a value that is not there.
const NONE: &str = "–";

pub(super) fn section(status: &Status, now: i64) -> Section {
    let blocks = status.upgrades.iter().flat_map(|upgrades| {
        let rows = upgrades.records.iter().map(|record| row(record, now));
        let last = Table::new(
            "The last upgrades, the newest first",
            COLUMNS,
            rows.collect(),
        );
        std::iter::once(facts(upgrades)).chain(last.into_blocks())
    });
    Section {
        id: "upgrades",
        title: "Upgrades",
        page: "upgrades.md",
        about: "The exchange of this process for its next version, without a lost request. If that \
                does not start, this one serves on: mend it, and upgrade again.",
        blocks: blocks.collect(),
        empty: "No server of this program takes part in upgrades.",
    }
}

fn facts(upgrades: &UpgradeStatus) -> Block {
    let state = match upgrades.state {
        UpgradeState::Draining => "drains",
        UpgradeState::Loading => "loads",
        UpgradeState::Upgrading => "serves; its next version loads",
        _ => "serves",
    };
    let before = upgrades.before.as_ref().map(|before| {
        let since = seconds(before.micros / 1_000_000);
        format!("process {} drains for {since}", before.pid)
    });
    let next = upgrades.next_pid.map(|pid| {
        let since = upgrades.loading_micros.map(micros);
        since.map_or_else(
            || format!("process {pid} serves"),
            |since| format!("process {pid} loads for {since}"),
        )
    });
    let failed = Value::from(count(upgrades.failed)).warn_if(upgrades.failed > 0);
    let refused = Value::from(count(upgrades.refused)).warn_if(upgrades.refused > 0);
    let mut facts = vec![
        Fact::new("This process", THIS, state),
        Fact::new("Next version", NEXT, or_none(next)),
        Fact::new("Version before", BEFORE, or_none(before)),
        Fact::new("Next ones by", WAY, way(upgrades)),
    ];
    if let Some(refusal) = &upgrades.refusal {
        facts.push(Fact::new("None begun here", REFUSAL, refusal.clone()));
    }
    if let Some(generation) = upgrades.generation {
        facts.push(Fact::new(
            "Generation",
            GENERATION,
            count(generation.into()),
        ));
    }
    facts.extend([
        Fact::new("Served", SERVED, count(upgrades.serves)),
        Fact::new("Failed", FAILED, failed),
        Fact::new("Refused", REFUSED, refused),
    ]);
    let program = &upgrades.program;
    let path = program.path.as_deref().unwrap_or("the program");
    let title = format!("Process {}: {path}", process(program));
    Block::Facts(Facts { title, facts })
}

fn way(upgrades: &UpgradeStatus) -> &'static str {
    match upgrades.way {
        UpgradeWay::Container => "a new container",
        UpgradeWay::ServiceManager => "systemctl reload",
        UpgradeWay::Signal if upgrades.refusal.is_some() => "a restart",
        UpgradeWay::Signal => "greenroom upgrade",
        UpgradeWay::StartServer => "SIGHUP to start_server",
        _ => "the program itself",
    }
}

fn row(record: &UpgradeRecord, now: i64) -> Vec<Value> {
    let UpgradeRecord { from, to, .. } = record;
    let outcome = Value::from(record.result.name());
    let program = to.as_ref().unwrap_or(from).path.clone();
    vec![
        ago(record.begun_unix_seconds, now).into(),
        process(from).into(),
        or_none(to.as_ref().map(process)).into(),
        outcome
            .warn_if(record.result == UpgradeResult::Refused)
            .bad_if(record.result == UpgradeResult::Failed),
        or_none(record.loading_micros.map(micros)).into(),
        or_none(record.drain_micros.map(micros)).into(),
        or_none(record.reason.clone()).into(),
        or_none(program).into(),
    ]
}

/// Returns the time that has passed, in words.
pub(super) fn ago(unix_seconds: u64, now: i64) -> String {
    let now = u64::try_from(now).unwrap_or_default();
    format!("{} ago", seconds(now.saturating_sub(unix_seconds)))
}

/// Returns the process, and the version in it if it has told that.
fn process(program: &UpgradeProgram) -> String {
    match &program.version {
        Some(version) => format!("{} ({version})", program.pid),
        None => program.pid.to_string(),
    }
}

fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NONE.to_owned())
}

const COLUMNS: &[Column] = &[
    Column::text("When", "The time since it was asked for."),
    Column::text(
        "From",
        "The process that served, and the version of Greenroom in it.",
    ),
    Column::text(
        "To",
        "The same of the next version. One that never served has not told its version.",
    ),
    Column::text(
        "Outcome",
        "serves: the next version took over. failed: it did not start, and the one before serves \
         on. refused: none was begun.",
    ),
    Column::number(
        "Loading",
        "The time until the next version took over, or had failed.",
    ),
    Column::number(
        "Drain",
        "The time from then on until the version before had ended. Not known while it drains, and \
         if the next upgrade came before its end.",
    ),
    Column::long("Reason", "Why the next version does not serve."),
    Column::long("Program", "The file of the next version, links followed."),
];

const THIS: &str = "serves; loads, while the version before serves; or drains: it finishes what is \
    under way, and ends.";
const NEXT: &str = "The process that loads as the next version, or has taken over.";
const BEFORE: &str = "The process whose place this one took, while it finishes what it has begun.";
const WAY: &str = "How a next version comes. SIGUSR2, as greenroom upgrade sends it; under systemd \
    also systemctl reload, if the unit says so. Perl's start_server starts it at SIGHUP. A \
    container is exchanged as a whole, and a program may begin upgrades of itself.";
const REFUSAL: &str = "Why this process begins no upgrade at SIGUSR2.";
const GENERATION: &str = "Which of the processes that start_server has started this one is; it \
    tells no more of the others.";
const SERVED: &str = "Upgrades after which the next version served, those of earlier versions \
    included. Who is started in another way than by an upgrade begins at 0.";
const FAILED: &str = "Upgrades after which the next version did not serve, so that the one before \
    went on.";
const REFUSED: &str = "Upgrades that were asked for and not begun, as another one was under way or \
    the server drained.";
