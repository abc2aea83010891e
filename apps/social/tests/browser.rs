//! Two people in two real browsers: on two replicas that share a database and Redis, and on one
//! embedded server. Their actions and expectations are in `browser/tour.mjs`; here the servers are
//! started, killed and restarted when that script orders it.

mod kit;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kit::ferretdb::FerretDb;
use kit::redis::Redis;
use kit::{installed, port};
use tempfile::TempDir;

const CHROMIUM: &str = "/usr/bin/chromium";

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_that_share_a_database_and_redis() {
    let (database, redis) = (FerretDb::start().await, Redis::start().await);
    let store = database.url("browser").to_string();
    let shared = ["--store", &store, "--redis", redis.url().as_str()].map(str::to_owned);
    take_tour(
        "replicas",
        &mut [Replica::new("a", &shared), Replica::new("b", &shared)],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_embedded_server() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let store = format!("sqlite:{}", directory.path().join("social.db").display());
    take_tour(
        "embedded",
        &mut [Replica::new("a", &["--store".to_owned(), store])],
    );
}

/// A process of the program.
struct Replica {
    name: &'static str,
    arguments: Vec<String>,
    port: u16,
    child: Option<Child>,
}

impl Replica {
    fn new(name: &'static str, arguments: &[String]) -> Self {
        Self {
            name,
            arguments: arguments.to_vec(),
            port: port::free_port(),
            child: None,
        }
    }

    fn start(&mut self, directory: &Path) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(directory.join(format!("{}.log", self.name)))
            .expect("the log can be written");
        let child = Command::new(env!("CARGO_BIN_EXE_social"))
            .args(&self.arguments)
            .args([
                "--listen",
                &format!("127.0.0.1:{}", self.port),
                "--sample",
                "false",
            ])
            .arg("--files")
            .arg(directory.join("files"))
            .env("RUST_LOG", "warn")
            .env("SOCIAL_LIMITS__SIGN_UPS", "0")
            .env("SOCIAL_LIMITS__LOG_INS", "0")
            .env("SOCIAL_LIMITS__MAILS", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the program was built for this test");
        self.child = Some(child);
    }

    /// Kills it as `kill -9` does.
    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("a child can be killed");
            child.wait().expect("a child can be waited for");
        }
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs the script to its end.
fn take_tour(name: &str, replicas: &mut [Replica]) {
    let directory = tempfile::tempdir().expect("a directory can be made");
    for replica in &mut *replicas {
        replica.start(directory.path());
    }
    let mut tour = start_tour(name, replicas, &directory);
    let mut orders = tour.stdin.take().expect("it is piped");
    let said = BufReader::new(tour.stdout.take().expect("it is piped"));
    for line in said.lines() {
        let line = line.expect("the script writes text");
        match line.split_once(' ') {
            Some(("kill", replica)) => find(replicas, replica).kill(),
            Some(("start", replica)) => find(replicas, replica).start(directory.path()),
            _ => panic!("the script says what is no order: {line}"),
        }
        writeln!(orders, "done").expect("the script waits for it");
    }
    let status = tour.wait().expect("the script can be waited for");
    assert!(
        status.success(),
        "the tour failed ({status}); the servers said:\n{}",
        logs(replicas, &directory)
    );
}

fn find<'a>(replicas: &'a mut [Replica], name: &str) -> &'a mut Replica {
    let found = replicas.iter_mut().find(|replica| replica.name == name);
    found.expect("the script names a known one")
}

/// Starts the script, which writes what it sees to standard error, and orders to standard output.
fn start_tour(name: &str, replicas: &[Replica], directory: &TempDir) -> Child {
    assert!(
        Path::new(CHROMIUM).exists(),
        "{CHROMIUM} is not installed: run `cargo xtask tools`"
    );
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let screenshots = here.join("../../target/social-screenshots").join(name);
    fs::create_dir_all(&screenshots).expect("the directory of screenshots can be made");
    let address = |replica: &Replica| format!("{}=http://127.0.0.1:{}", replica.name, replica.port);
    let playwright: PathBuf = installed("node/node_modules/playwright-core");
    let axe = installed("node/node_modules/axe-core/axe.min.js");
    Command::new("node")
        .arg(here.join("tests/browser/tour.mjs"))
        .args(replicas.iter().map(address))
        .env("TOUR_PLAYWRIGHT", playwright.join("index.mjs"))
        .env("TOUR_AXE", axe)
        .env("TOUR_CHROMIUM", CHROMIUM)
        .env("TOUR_DIRECTORY", directory.path())
        .env("TOUR_SCREENSHOTS", screenshots)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node is installed")
}

fn logs(replicas: &[Replica], directory: &TempDir) -> String {
    let log = |replica: &Replica| {
        let text = fs::read_to_string(directory.path().join(format!("{}.log", replica.name)));
        format!("--- {}\n{}", replica.name, text.unwrap_or_default())
    };
    replicas.iter().map(log).collect()
}
