//! Prometheus itself, with our alerts, and a server that it scrapes.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::names::packaged;
use crate::outside::{tools, wait::until};
use crate::ports::free_port;

/// The time-out of a condition; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_mins(1);

/// Prometheus while it runs. It is killed when this is dropped.
pub(crate) struct Prometheus {
    process: Child,
    port: u16,
    _directory: TempDir,
}

impl Prometheus {
    /// Scrapes this address every quarter of a second.
    pub(crate) fn scraping(address: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let config = directory.path().join("prometheus.yml");
        let rules = packaged("alerts.yml");
        let text = format!(
            "global:\n  scrape_interval: 250ms\n  evaluation_interval: 250ms\n\
             rule_files: [{}]\n\
             scrape_configs:\n  - job_name: greenroom\n    metrics_path: /greenroom/metrics\n    \
             static_configs:\n      - targets: ['{address}']\n",
            rules.display()
        );
        fs::write(&config, text).unwrap();
        let port = free_port();
        let process = Command::new(tools::system("prometheus"))
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                directory.path().join("data").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            process,
            port,
            _directory: directory,
        }
    }

    /// Asks the interface for programs; `None` if it does not respond, or with a failure.
    pub(crate) fn ask(&self, path: &str, parameters: &[(&str, &str)]) -> Option<Value> {
        let mut curl = tools::bounded(tools::system("curl"), PATIENCE);
        curl.args(["--silent", "--get"]);
        for (name, value) in parameters {
            curl.args(["--data-urlencode", &format!("{name}={value}")]);
        }
        let url = format!("http://127.0.0.1:{}/api/v1/{path}", self.port);
        let asked = tools::run(curl.arg(url));
        let mut response: Value = serde_json::from_str(&asked.stdout).ok()?;
        (response["status"] == "success").then(|| response["data"].take())
    }

    /// Returns the names of all metrics that it has.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = self.ask("label/__name__/values", &[]);
        names.map_or_else(Vec::new, |names| serde_json::from_value(names).unwrap())
    }

    /// Waits until an expression has a result, and returns that.
    pub(crate) fn await_result(&self, query: &str) -> Value {
        let result = || {
            let data = self.ask("query", &[("query", query)]);
            data.map_or(Value::Null, |mut data| data["result"].take())
        };
        let is_there = |result: &Value| result.as_array().is_some_and(|all| !all.is_empty());
        until(query, PATIENCE, result, is_there)
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
