//! Users who like pictures, at a rate.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use tokio::task::JoinSet;
use tokio::time::{sleep, sleep_until};

use super::Board;
use crate::site::{Like, User};

/// Time before the first like, in which all are started.
const HEAD_START: Duration = Duration::from_millis(100);
/// Most attempts at a like that is rejected.
const ATTEMPTS_MAX: usize = 20;
/// Pause before another attempt.
const REST: Duration = Duration::from_millis(100);

/// Likes of several pictures, evenly spread over time and pictures.
#[derive(Debug)]
pub(crate) struct Likers {
    /// The user; their likes come and go, so that each changes something.
    pub(crate) user: User,
    /// The pictures, in the order of the board.
    pub(crate) pictures: Vec<String>,
    /// Likes a second, of all pictures.
    pub(crate) rate: f64,
    /// Likes of each picture.
    pub(crate) likes_each: usize,
    /// True if the first like of each picture is to be taken back, because the picture is liked
    /// already.
    pub(crate) begins_liked: bool,
}

impl Likers {
    /// Makes all likes; returns their number. One picture's likes go out one after the other, so
    /// that each has its place in the topic.
    ///
    /// A like that has to wait for the one before counts from the time at which it was due.
    pub(crate) async fn run(&self, board: &Arc<Board>) -> anyhow::Result<u64> {
        let begin = Instant::now() + HEAD_START;
        let mut all = JoinSet::new();
        for (index, picture) in self.pictures.iter().enumerate() {
            let liker = Liker {
                user: self.user.clone(),
                picture: picture.clone(),
                index,
                pictures: self.pictures.len(),
                rate: self.rate,
                begins_liked: self.begins_liked,
            };
            all.spawn(liker.run(Arc::clone(board), begin, self.likes_each));
        }
        while let Some(ended) = all.join_next().await {
            ended.context("a task")??;
        }
        Ok((self.pictures.len() * self.likes_each) as u64)
    }
}

struct Liker {
    user: User,
    picture: String,
    index: usize,
    pictures: usize,
    rate: f64,
    begins_liked: bool,
}

impl Liker {
    #[expect(clippy::cast_precision_loss, reason = "numbers far below 2^52")]
    async fn run(self, board: Arc<Board>, begin: Instant, likes: usize) -> anyhow::Result<()> {
        for number in 0..likes {
            let turn = (number * self.pictures + self.index) as f64;
            let due = begin + Duration::from_secs_f64(turn / self.rate);
            sleep_until(due.into()).await;
            board.note(self.index, number, due);
            let likes = number.is_multiple_of(2) != self.begins_liked;
            let like = self.set_like(likes).await?;
            let expected = board.event_of(self.index, number);
            ensure!(
                like.likes_seq == expected,
                "like {number} of picture {} is event {}, not {expected}",
                self.picture,
                like.likes_seq
            );
        }
        Ok(())
    }

    /// Repeats a rejected like, which is harmless if it was stored all the same; the time runs on.
    async fn set_like(&self, likes: bool) -> anyhow::Result<Like> {
        for _ in 1..ATTEMPTS_MAX {
            match self.user.set_like(&self.picture, likes).await {
                Ok(like) => return Ok(like),
                Err(error) => eprintln!("a like is sent again: {error:#}"),
            }
            sleep(REST).await;
        }
        self.user.set_like(&self.picture, likes).await
    }
}

/// Returns the likes a second when the likes of each picture follow each other at once, for this
/// time. All pictures are as before.
#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
pub(crate) async fn rate_max(
    user: &User,
    pictures: &[String],
    lasting: Duration,
) -> anyhow::Result<f64> {
    let begin = Instant::now();
    let end = begin + lasting;
    let mut all = JoinSet::new();
    for picture in pictures {
        all.spawn(like_until(user.clone(), picture.clone(), end));
    }
    let mut made = 0;
    while let Some(ended) = all.join_next().await {
        made += ended.context("a task")??;
    }
    Ok(made as f64 / begin.elapsed().as_secs_f64())
}

async fn like_until(user: User, picture: String, end: Instant) -> anyhow::Result<u64> {
    let mut made = 0;
    while Instant::now() < end {
        for likes in [true, false] {
            made += u64::from(user.set_like(&picture, likes).await.is_ok());
        }
    }
    // Also if the last like was rejected: the picture is as before.
    user.set_like(&picture, false).await?;
    Ok(made)
}
