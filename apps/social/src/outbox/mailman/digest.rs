//! The content of a digest: the likes and comments of a day.

use std::collections::HashMap;
use std::ops::Range;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::Deserialize;
use serde_json::json;

use crate::model::{Event, Id, NewTask, TaskKind, User, topic};
use crate::store::{Result, Store};

/// Users read at a time.
const PAGE: u32 = 100;
/// Events of a bell that a digest counts: the latest.
const EVENTS_MAX: u32 = 1_000;
/// Pictures that a digest names: those with the most news.
const PICTURES_MAX: usize = 20;
/// Users named for one picture; the others are counted.
const NAMES_MAX: usize = 3;

/// The news of a user's pictures.
pub(super) struct News {
    pub(super) pictures: Vec<PictureNews>,
    /// Pictures with news beyond those that are listed.
    pub(super) more: usize,
}

/// The news of one picture.
pub(super) struct PictureNews {
    pub(super) picture: Id,
    pub(super) caption: String,
    /// Lines such as `3 likes (ada, bob, eve)`.
    pub(super) lines: Vec<String>,
}

#[derive(Deserialize)]
struct Ring {
    kind: Kind,
    by: String,
    picture: Id,
}

#[derive(Clone, Copy, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Like,
    Comment,
}

/// Returns the last day whose hour (UTC) has come. Before today's hour it is yesterday, whose
/// digests may not have been added yet.
pub(super) fn day_that_is_due(now: Timestamp, hour: i8) -> Date {
    let now = now.to_zoned(TimeZone::UTC);
    let today = now.date();
    if now.hour() >= hour {
        today
    } else {
        today.yesterday().unwrap_or(today)
    }
}

/// Returns the 24 hours that a day's digest covers; the next day's follow without a gap.
pub(super) fn window(day: Date, hour: i8) -> Range<Timestamp> {
    let end = day.at(hour, 0, 0, 0).to_zoned(TimeZone::UTC);
    let end = end.map_or(Timestamp::MAX, |end| end.timestamp());
    end.checked_sub(24.hours()).unwrap_or(Timestamp::MIN)..end
}

/// Adds a task for each user who wants a digest and has news. The keys make it happen once, however
/// often and by whichever replica this runs.
pub(super) async fn add_tasks(
    store: &dyn Store,
    day: Date,
    hour: i8,
    now: Timestamp,
) -> Result<()> {
    let begin = window(day, hour).start;
    let mut after = None;
    loop {
        let users = store.users(after, PAGE).await?;
        let Some(last) = users.last() else {
            return Ok(());
        };
        after = Some(last.id);
        let mut tasks = Vec::new();
        for user in users.iter().filter(|user| user.gets_digest()) {
            if has_news(store, user, begin).await? {
                tasks.push(task(user.id, day, now));
            }
        }
        if !tasks.is_empty() {
            store.add_tasks(tasks).await?;
        }
    }
}

async fn has_news(store: &dyn Store, user: &User, since: Timestamp) -> Result<bool> {
    let last = store.last_events(&topic::bell(user.id), 1).await?;
    Ok(last.iter().any(|event| event.at >= since))
}

fn task(user: Id, day: Date, due: Timestamp) -> NewTask {
    NewTask {
        key: format!("digest:{user}:{day}"),
        kind: TaskKind::Mail,
        payload: json!({"mail": "digest", "user": user, "day": day}),
        due,
    }
}

/// Returns the news of a user's bell in a window of time; `None` if there are none, or their
/// pictures are gone.
pub(super) async fn news(
    store: &dyn Store,
    user: Id,
    window: &Range<Timestamp>,
) -> Result<Option<News>> {
    let events = store.last_events(&topic::bell(user), EVENTS_MAX).await?;
    let by_picture = group(&events, window);
    let mut pictures = Vec::new();
    let more = by_picture.len().saturating_sub(PICTURES_MAX);
    for (picture, rings) in by_picture.into_iter().take(PICTURES_MAX) {
        if let Some(found) = store.picture(picture).await? {
            let caption = found.caption;
            let lines = lines(&rings);
            pictures.push(PictureNews {
                picture,
                caption,
                lines,
            });
        }
    }
    Ok((!pictures.is_empty()).then_some(News { pictures, more }))
}

/// Groups events by picture, those with the most first.
fn group(events: &[Event], window: &Range<Timestamp>) -> Vec<(Id, Vec<Ring>)> {
    let mut groups: HashMap<Id, Vec<Ring>> = HashMap::new();
    for event in events.iter().filter(|event| window.contains(&event.at)) {
        if let Ok(ring) = Ring::deserialize(&event.body) {
            groups.entry(ring.picture).or_default().push(ring);
        }
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by(|(one, rings), (other, others)| {
        others.len().cmp(&rings.len()).then(other.cmp(one))
    });
    groups
}

fn lines(rings: &[Ring]) -> Vec<String> {
    [(Kind::Like, "like"), (Kind::Comment, "comment")]
        .into_iter()
        .filter_map(|(kind, word)| line(rings, kind, word))
        .collect()
}

/// Returns a line such as `4 comments (ada, bob, eve and 1 other)`.
fn line(rings: &[Ring], kind: Kind, word: &str) -> Option<String> {
    let mut names: Vec<&str> = rings
        .iter()
        .filter(|ring| ring.kind == kind)
        .map(|ring| ring.by.as_str())
        .collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    let others = names.len().saturating_sub(NAMES_MAX);
    names.truncate(NAMES_MAX);
    let mut who = names.join(", ");
    if others > 0 {
        who = format!("{who} and {others} other{}", plural(others));
    }
    (count > 0).then(|| format!("{count} {word}{} ({who})", plural(count)))
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("it is a time")
    }

    fn rings(names: &[&str], kind: Kind) -> Vec<Ring> {
        let ring = |name: &&str| Ring {
            kind,
            by: (*name).to_owned(),
            picture: Id::from_bytes([1; 16]),
        };
        names.iter().map(ring).collect()
    }

    #[test]
    fn digests_are_due_from_their_hour_on() {
        let before = day_that_is_due(at("2026-11-22T16:59:59Z"), 17);
        assert_eq!(before, Date::constant(2026, 11, 21));
        let due = day_that_is_due(at("2026-11-22T17:00:00Z"), 17);
        assert_eq!(due, Date::constant(2026, 11, 22));
    }

    #[test]
    fn the_windows_of_two_days_meet() {
        let day = Date::constant(2026, 11, 22);
        let next = Date::constant(2026, 11, 23);
        assert_eq!(window(day, 17).end, at("2026-11-22T17:00:00Z"));
        assert_eq!(window(next, 17).start, window(day, 17).end);
    }

    #[test]
    fn lines_name_a_few_and_count_all() {
        let mut all = rings(&["eve", "ada", "bob", "dan", "ada"], Kind::Comment);
        all.extend(rings(&["ada"], Kind::Like));
        assert_eq!(
            lines(&all),
            ["1 like (ada)", "5 comments (ada, bob, dan and 1 other)"]
        );
        assert!(lines(&[]).is_empty());
    }
}
