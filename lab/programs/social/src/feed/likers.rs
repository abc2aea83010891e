//! Users who like pictures, at a rate, and the times at which likes were due.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures_util::future::try_join_all;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use super::topics::{Positions, likes_topic};
use crate::api::{Client, User};

/// Time before the first like, in which all are started.
const HEAD_START: Duration = Duration::from_millis(100);
/// Most attempts at a like that is rejected, and the pause before another one.
const ATTEMPTS_MAX: usize = 20;
const REST: Duration = Duration::from_millis(100);

/// The likes that are made, topic by topic, one after the other.
#[derive(Debug)]
pub(super) struct Board {
    columns: BTreeMap<String, Column>,
    /// Likes of each topic, in the end.
    pub(super) likes_each: u64,
}

/// The likes of one topic.
#[derive(Debug)]
struct Column {
    /// The number of the event before the first like.
    before: u64,
    /// The time at which each was due.
    due: Mutex<Vec<Instant>>,
}

impl Board {
    pub(super) fn new(ends: &Positions, likes_each: u64) -> Self {
        let column = |(topic, before): (&String, &u64)| {
            let due = Mutex::default();
            (
                topic.clone(),
                Column {
                    before: *before,
                    due,
                },
            )
        };
        Self {
            columns: ends.iter().map(column).collect(),
            likes_each,
        }
    }

    /// Notes that the next like of a topic was due; returns the number of its event.
    fn note(&self, topic: &str, due: Instant) -> anyhow::Result<u64> {
        let column = self.columns.get(topic).context("a topic without end")?;
        let mut all = column.due.lock();
        all.push(due);
        Ok(column.before + all.len() as u64)
    }

    /// Returns the number of the last like's event.
    pub(super) fn last(&self, topic: &str) -> u64 {
        let column = self.columns.get(topic);
        column.map_or(0, |column| column.before + self.likes_each)
    }

    /// Returns the latency of an event that arrives at this moment; `None` if it is of no like on
    /// the board.
    pub(super) fn latency(&self, topic: &str, seq: u64, arrived: Instant) -> Option<Duration> {
        let column = self.columns.get(topic)?;
        let number = usize::try_from(seq.checked_sub(column.before + 1)?).ok()?;
        let due = *column.due.lock().get(number)?;
        Some(arrived.saturating_duration_since(due))
    }
}

/// Likes of several pictures, evenly spread over time and pictures.
#[derive(Debug)]
pub(super) struct Likers {
    pub(super) client: Client,
    /// The user; their likes come and go, so that each changes something.
    pub(super) user: User,
    pub(super) pictures: Vec<String>,
    /// Likes a second, of all pictures.
    pub(super) rate: f64,
}

impl Likers {
    /// Makes all likes; returns their number. One picture's likes go out one after the other, so
    /// that each has its place in the topic.
    ///
    /// A like that has to wait for the one before counts from the time at which it was due.
    pub(super) async fn run(self, board: &Arc<Board>) -> anyhow::Result<u64> {
        let begin = Instant::now() + HEAD_START;
        let this = Arc::new(self);
        let mut all = JoinSet::new();
        for picture in 0..this.pictures.len() {
            let (this, board) = (Arc::clone(&this), Arc::clone(board));
            all.spawn(async move { this.like(picture, &board, begin).await });
        }
        while let Some(ended) = all.join_next().await {
            ended.context("a task")??;
        }
        Ok(this.pictures.len() as u64 * board.likes_each)
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers far below 2^52")]
    async fn like(&self, index: usize, board: &Board, begin: Instant) -> anyhow::Result<()> {
        let (picture, count) = (&self.pictures[index], self.pictures.len() as u64);
        let topic = likes_topic(picture);
        for number in 0..board.likes_each {
            let turn = (number * count + index as u64) as f64;
            let due = begin + Duration::from_secs_f64(turn / self.rate);
            sleep_until(due.into()).await;
            let expected = board.note(&topic, due)?;
            let seq = self.set_like(picture, number.is_multiple_of(2)).await?;
            ensure!(
                seq == expected,
                "like {number} of picture {picture} is event {seq}, not {expected}"
            );
        }
        Ok(())
    }

    /// Repeats a rejected like, which is harmless if it was stored all the same; the time runs on.
    async fn set_like(&self, picture: &str, likes: bool) -> anyhow::Result<u64> {
        for _ in 1..ATTEMPTS_MAX {
            match self.client.set_like(&self.user, picture, likes).await {
                Ok(seq) => return Ok(seq),
                Err(error) => eprintln!("a like is sent again: {error:#}"),
            }
            sleep(REST).await;
        }
        self.client.set_like(&self.user, picture, likes).await
    }

    /// Returns the likes a second when the likes of each picture follow each other at once, for
    /// this time. All pictures are as before.
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    pub(super) async fn rate_max(&self, lasting: Duration) -> anyhow::Result<f64> {
        let begin = Instant::now();
        let set = |picture, likes| self.client.set_like(&self.user, picture, likes);
        let like_until_end = |picture| async move {
            let mut made = 0_u64;
            while begin.elapsed() < lasting {
                made += u64::from(set(picture, true).await.is_ok());
                made += u64::from(set(picture, false).await.is_ok());
            }
            // Also if the last like was rejected: the picture is as before.
            set(picture, false).await?;
            anyhow::Ok(made)
        };
        let all = try_join_all(self.pictures.iter().map(|id| like_until_end(id))).await?;
        Ok(all.iter().sum::<u64>() as f64 / begin.elapsed().as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_as_late_as_its_like_was_due() {
        let board = Board::new(&Positions::from([("/a".to_owned(), 7)]), 2);
        let (due, late) = (Instant::now(), Duration::from_millis(5));
        assert_eq!(board.latency("/a", 8, due), None);
        assert_eq!(board.note("/a", due).expect("known"), 8);
        assert_eq!(board.latency("/a", 8, due + late), Some(late));
        assert_eq!(board.latency("/a", 7, due), None);
        assert_eq!(board.latency("/a", 9, due), None);
        assert_eq!(board.last("/a"), 9);
    }
}
