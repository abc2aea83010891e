//! Retry times: when a failed task is tried again, and when it is given up.

use std::time::Duration;

use jiff::Timestamp;

use super::worker::Setback;
use crate::model::{Outcome, Task};

/// Delay after the first try; each further delay is twice as long…
const FIRST: Duration = Duration::from_secs(2);
/// … up to this.
const LONGEST: Duration = Duration::from_mins(15);
/// Longest delay that a remote server may ask for.
const ASKED_MAX: Duration = Duration::from_hours(24);
/// Largest random addition to a delay, as a fraction of it: tasks that failed together are not
/// retried together.
const JITTER: f64 = 0.2;

/// Returns the outcome of a task that failed. `give_up_after` counts from the time it was added;
/// `None` never gives up.
pub(super) fn outcome(
    task: &Task,
    setback: Setback,
    now: Timestamp,
    give_up_after: Option<Duration>,
) -> Outcome {
    let (error, asked) = match setback {
        Setback::Permanent(reason) => return Outcome::GaveUp(reason),
        Setback::Unfinished => return go_on(now),
        Setback::Temporary { error, after } => (error, after),
    };
    let age = Duration::try_from(now.duration_since(task.added_at)).unwrap_or_default();
    if give_up_after.is_some_and(|most| age >= most) {
        let tries = task.attempts;
        return Outcome::GaveUp(format!("tried {tries} times; the last time: {error}"));
    }
    let rest = rest(task.attempts, rand::random()).max(asked.unwrap_or_default().min(ASKED_MAX));
    let due = now.checked_add(rest).unwrap_or(Timestamp::MAX);
    Outcome::Retry { due, error }
}

/// Retries at once: nothing has failed.
fn go_on(now: Timestamp) -> Outcome {
    Outcome::Retry {
        due: now,
        error: "a part is done".to_owned(),
    }
}

/// Returns the delay after a number of tries; `chance` is 0 to 1.
fn rest(tries: u32, chance: f64) -> Duration {
    let doublings = tries.saturating_sub(1).min(16);
    let rest = FIRST.saturating_mul(1 << doublings).min(LONGEST);
    rest.mul_f64(1.0 + JITTER * chance)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::model::TaskKind;

    const DAY: Option<Duration> = Some(Duration::from_hours(24));

    fn task(attempts: u32) -> Task {
        Task {
            key: "key".to_owned(),
            kind: TaskKind::Mail,
            payload: Value::Null,
            attempts,
            added_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn seconds(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).expect("it is in range")
    }

    #[test]
    fn rests_double_up_to_the_longest() {
        assert_eq!(rest(1, 0.0), FIRST);
        assert_eq!(rest(2, 0.0), FIRST * 2);
        assert_eq!(rest(4, 0.0), FIRST * 8);
        assert_eq!(rest(u32::MAX, 0.0), LONGEST);
        assert_eq!(rest(1, 1.0), FIRST.mul_f64(1.2));
    }

    #[test]
    fn what_others_ask_for_is_kept_within_reason() {
        let asked = |after| {
            let setback = Setback::Temporary {
                error: "busy".to_owned(),
                after: Some(after),
            };
            match outcome(&task(1), setback, seconds(0), DAY) {
                Outcome::Retry { due, .. } => due,
                other => panic!("it is tried again: {other:?}"),
            }
        };
        assert_eq!(asked(Duration::from_mins(30)), seconds(1_800));
        assert_eq!(asked(Duration::MAX), seconds(86_400));
    }

    #[test]
    fn what_makes_progress_goes_on_at_once() {
        let late = seconds(1 << 33);
        let outcome = outcome(&task(9), Setback::Unfinished, late, DAY);
        assert!(
            matches!(outcome, Outcome::Retry { due, .. } if due == late),
            "{outcome:?}"
        );
    }

    #[test]
    fn it_gives_up_when_the_time_is_over() {
        let at = |now| outcome(&task(9), Setback::temporary("away"), seconds(now), DAY);
        assert!(matches!(at(86_399), Outcome::Retry { .. }));
        assert_eq!(
            at(86_400),
            Outcome::GaveUp("tried 9 times; the last time: away".to_owned())
        );
        let never = outcome(&task(9), Setback::temporary("away"), seconds(1 << 33), None);
        assert!(matches!(never, Outcome::Retry { .. }));
    }
}
