//! Users who like pictures, at a rate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures_util::future::try_join_all;
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use super::Board;
use crate::api::{Client, User};

/// Time before the first like, in which all are started.
const HEAD_START: Duration = Duration::from_millis(100);
/// Most attempts at a like that is rejected.
const ATTEMPTS_MAX: usize = 20;
/// Pause before another attempt.
const REST: Duration = Duration::from_millis(100);

/// Likes of several pictures, evenly spread over time and pictures.
#[derive(Debug)]
pub(crate) struct Likers {
    pub(crate) client: Client,
    /// The user; their likes come and go, so that each changes something.
    pub(crate) user: User,
    /// The pictures, in the order of the board.
    pub(crate) pictures: Vec<String>,
    /// Likes a second, of all pictures.
    pub(crate) rate: f64,
    /// Likes of each picture.
    pub(crate) likes_each: usize,
}

impl Likers {
    /// Makes all likes; returns their number. One picture's likes go out one after the other, so
    /// that each has its place in the topic.
    ///
    /// A like that has to wait for the one before counts from the time at which it was due.
    pub(crate) async fn run(self, board: &Arc<Board>) -> anyhow::Result<u64> {
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
        Ok((this.pictures.len() * this.likes_each) as u64)
    }

    #[expect(clippy::cast_precision_loss, reason = "numbers far below 2^52")]
    async fn like(&self, picture: usize, board: &Board, begin: Instant) -> anyhow::Result<()> {
        for number in 0..self.likes_each {
            let turn = (number * self.pictures.len() + picture) as f64;
            let due = begin + Duration::from_secs_f64(turn / self.rate);
            sleep_until(due.into()).await;
            board.note(picture, number, due);
            let likes = number.is_multiple_of(2);
            let seq = self.set_like(&self.pictures[picture], likes).await?;
            let expected = board.event_of(picture, number);
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
}

/// Returns the likes a second when the likes of each picture follow each other at once, for this
/// time. All pictures are as before.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
pub(crate) async fn rate_max(
    client: &Client,
    user: &User,
    pictures: &[String],
    lasting: Duration,
) -> anyhow::Result<f64> {
    let begin = Instant::now();
    let like_until_end = |picture: &String| {
        let picture = picture.clone();
        async move {
            let mut made = 0_u64;
            while begin.elapsed() < lasting {
                for likes in [true, false] {
                    made += u64::from(client.set_like(user, &picture, likes).await.is_ok());
                }
            }
            // Also if the last like was rejected: the picture is as before.
            client.set_like(user, &picture, false).await?;
            anyhow::Ok(made)
        }
    };
    let all = try_join_all(pictures.iter().map(like_until_end)).await?;
    Ok(all.iter().sum::<u64>() as f64 / begin.elapsed().as_secs_f64())
}
