//! The plan of a comparison.

use std::collections::HashSet;
use std::time::Duration;

use super::{CompareError, Contender, Cores, Launch};
use crate::plan::{End, Pace, Plan, Protocol, Schedule, StreamPlan};

/// The most rounds.
const ROUNDS_MAX: u32 = 99;
/// The most servers.
const CONTENDERS_MAX: usize = 16;
/// The suffix that names the first contender's second run.
const AGAIN: &str = " (again)";

/// A comparison: the servers, the load of each, and the number of rounds.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The servers, from 1 to 16 with distinct names; the others are held against the first.
    pub contenders: Vec<Contender>,
    /// Rounds, from 1 to 99. Default: 7. Less than 6 cannot show a difference.
    pub rounds: u32,
    /// The load; each server's targets replace its targets, and the protocol of their URLs its
    /// protocol unless that is HTTP/2.
    pub template: StreamPlan,
    /// The interval of progress reports. Default: 1 s.
    pub interval: Duration,
    /// The length of each server's warm-up. Default: 1 s; zero for none.
    pub warm_up: Duration,
    /// Cores of the server. Default: all but those of the load.
    pub server_cores: Option<Cores>,
    /// Cores of the load. Default: the last one, or those that the server leaves. Where there is
    /// but one core, both share it.
    pub load_cores: Option<Cores>,
    /// The time within which a server must accept connections. Default: 10 s.
    pub start_timeout: Duration,
    /// The time that a server has to end after SIGTERM, before SIGKILL. Default: 5 s.
    pub end_timeout: Duration,
    /// The required agreement of the first responses. Default: the whole body.
    pub check: Check,
}

/// The agreement that is required of the first responses of all servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// The status and every byte of the body.
    #[default]
    Body,
    /// Nothing.
    Nothing,
}

impl Comparison {
    /// Creates a comparison with the defaults.
    #[must_use]
    pub fn new(contenders: Vec<Contender>, template: StreamPlan) -> Self {
        Self {
            contenders,
            rounds: 7,
            template,
            interval: Duration::from_secs(1),
            warm_up: Duration::from_secs(1),
            server_cores: None,
            load_cores: None,
            start_timeout: Duration::from_secs(10),
            end_timeout: Duration::from_secs(5),
            check: Check::Body,
        }
    }

    pub(super) fn validate(&self) -> Result<(), CompareError> {
        let fail = |reason: String| Err(CompareError::Plan(reason));
        if !(1..=ROUNDS_MAX).contains(&self.rounds) {
            return fail(format!(
                "rounds must be from 1 to {ROUNDS_MAX}, not {}",
                self.rounds
            ));
        }
        let count = self.contenders.len();
        if !(1..=CONTENDERS_MAX).contains(&count) {
            return fail(format!(
                "from 1 to {CONTENDERS_MAX} servers can be compared, not {count}"
            ));
        }
        let mut names = HashSet::new();
        for contender in &self.contenders {
            if !names.insert(&contender.name) {
                return fail(format!("two servers have the name {:?}", contender.name));
            }
            if contender.command.is_empty() {
                return fail(format!("{}: there is no command", contender.name));
            }
        }
        Ok(())
    }

    /// Returns the runs of a round, forwards: each contender, and the first one again.
    pub(super) fn runs(&self) -> Vec<Run<'_>> {
        let first = self.contenders.first();
        let contenders = self.contenders.iter().map(|contender| Run {
            name: contender.name.clone(),
            contender,
        });
        let again = first.map(|contender| Run {
            name: format!("{}{AGAIN}", contender.name),
            contender,
        });
        contenders.chain(again).collect()
    }

    pub(super) fn launch(&self, run: &Run<'_>, cores: Option<Cores>) -> Launch {
        let Contender {
            command, target, ..
        } = run.contender;
        Launch {
            cores,
            start_timeout: self.start_timeout,
            end_timeout: self.end_timeout,
            ..Launch::new(run.name.clone(), command.clone(), target.clone())
        }
    }

    pub(super) fn measured(&self, run: &Run<'_>) -> Plan {
        self.plan(StreamPlan {
            name: run.name.clone(),
            protocol: self.protocol(run),
            targets: vec![run.contender.target.clone()],
            ..self.template.clone()
        })
    }

    fn protocol(&self, run: &Run<'_>) -> Protocol {
        match self.template.protocol {
            Protocol::Http2 => Protocol::Http2,
            Protocol::Http1 | Protocol::WebSocket => run.contender.target.scheme.protocol(),
        }
    }

    /// Returns the plan of the one request whose response is compared.
    pub(super) fn first_request(&self, run: &Run<'_>) -> Plan {
        let mut plan = self.measured(run);
        for stream in &mut plan.streams {
            stream.pace = Pace::Closed;
            stream.end = requests(1);
            stream.connections = 1;
            stream.in_flight_max = 1;
            stream.threads = 1;
            stream.records_max = 0;
        }
        plan
    }

    /// Returns the same load for a shorter time, a schedule at its mean rate; `None` without a
    /// warm-up.
    pub(super) fn warming_up(&self, run: &Run<'_>) -> Option<Plan> {
        if self.warm_up.is_zero() {
            return None;
        }
        let mut plan = self.measured(run);
        for stream in &mut plan.streams {
            stream.records_max = 0;
            stream.end = End {
                requests: None,
                duration: Some(self.warm_up),
            };
            if let Pace::Open(schedule) = &stream.pace {
                stream.pace = Pace::Open(shortened(schedule, self.warm_up)?);
            }
        }
        Some(plan)
    }

    fn plan(&self, stream: StreamPlan) -> Plan {
        Plan {
            streams: vec![stream],
            interval: self.interval,
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "requests of a week at most")]
fn shortened(schedule: &Schedule, duration: Duration) -> Option<Schedule> {
    let rate = schedule.requests() as f64 / schedule.duration().as_secs_f64();
    Schedule::constant(rate, duration).ok()
}

fn requests(count: u64) -> End {
    End {
        requests: Some(count),
        duration: None,
    }
}

/// One server's turn in a round.
#[derive(Clone, Debug)]
pub(super) struct Run<'a> {
    pub(super) name: String,
    pub(super) contender: &'a Contender,
}

/// Returns the order of `count` runs in a round, counted from 0: forwards, then backwards.
pub(super) fn order(round: u32, count: usize) -> Vec<usize> {
    if round.is_multiple_of(2) {
        (0..count).collect()
    } else {
        (0..count).rev().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(names: &[&str]) -> Comparison {
        let contender = |name: &&str| {
            let text = format!("{name}=true http://127.0.0.1:1/{name}");
            text.parse().expect("a contender")
        };
        let template = StreamPlan::new("http://127.0.0.1:1/".parse().expect("a URL"));
        Comparison::new(names.iter().map(contender).collect(), template)
    }

    #[test]
    fn rounds_go_forwards_and_backwards_with_a_control() {
        let comparison = comparison(&["a", "b"]);
        let runs = comparison.runs();
        let names = |round| -> Vec<&str> {
            let order = order(round, runs.len()).into_iter();
            order.map(|run| runs[run].name.as_str()).collect()
        };
        assert_eq!(names(0), ["a", "b", "a (again)"]);
        assert_eq!(names(1), ["a (again)", "b", "a"]);
        assert_eq!(names(2), names(0));
    }

    #[test]
    fn what_cannot_be_compared_is_reported() {
        let told = |comparison: &Comparison| match comparison.validate() {
            Err(error) => error.to_string(),
            Ok(()) => "valid".to_owned(),
        };
        assert_eq!(told(&comparison(&["a", "b"])), "valid");
        assert!(told(&comparison(&["a", "b", "a"])).contains("the name \"a\""));
        assert!(told(&comparison(&[])).contains("not 0"));
        for rounds in [0, 100] {
            let mut comparison = comparison(&["a"]);
            comparison.rounds = rounds;
            assert!(told(&comparison).contains("from 1 to 99"));
        }
    }

    #[test]
    fn warming_up_is_short() {
        let mut comparison = comparison(&["a"]);
        let ramp = crate::plan::Phase {
            from: 0.0,
            to: 200.0,
            duration: Duration::from_mins(1),
        };
        let schedule = Schedule::new(vec![ramp]).expect("valid");
        comparison.template.pace = Pace::Open(schedule);
        let plan = comparison.warming_up(&comparison.runs()[0]);
        let stream = &plan.expect("a second").streams[0];
        let Pace::Open(schedule) = &stream.pace else {
            panic!("it was an open loop");
        };
        assert_eq!(
            (schedule.requests(), schedule.duration()),
            (100, comparison.warm_up)
        );
        assert_eq!(stream.targets[0].path, "/a");
    }
}
