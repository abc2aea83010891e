//! Users who like, comment and sign up, and record what was acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reqwest::Method;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::client::{Login, Outcome, Replicas};

/// Longest time of one change, on an overloaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);

/// The actions of one user.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// Pictures that the user likes: each was acknowledged.
    pub(crate) liked: Vec<String>,
    /// Comments that were acknowledged, as (picture, text).
    pub(crate) comments: Vec<(String, String)>,
    /// Comments of which it is unknown if they were stored.
    pub(crate) perhaps: Vec<(String, String)>,
    /// Names that were signed up.
    pub(crate) signed_up: Vec<String>,
}

/// Users at work, until they are stopped.
pub(crate) struct Load {
    users: JoinSet<Done>,
    stop: Arc<AtomicBool>,
    acknowledged: watch::Sender<u64>,
}

impl Load {
    pub(crate) fn start(
        replicas: &Arc<Replicas>,
        logins: Vec<Login>,
        pictures: &Arc<Vec<String>>,
    ) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let acknowledged = watch::Sender::new(0);
        let mut users = JoinSet::new();
        for login in logins {
            let user = User {
                replicas: Arc::clone(replicas),
                pictures: Arc::clone(pictures),
                acknowledged: acknowledged.clone(),
                login,
                done: Done::default(),
            };
            users.spawn(user.work(Arc::clone(&stop)));
        }
        Self {
            users,
            stop,
            acknowledged,
        }
    }

    /// Waits until so many more changes were acknowledged.
    pub(crate) async fn more(&self, changes: u64) {
        let mut acknowledged = self.acknowledged.subscribe();
        let enough = *acknowledged.borrow() + changes;
        while *acknowledged.borrow_and_update() < enough {
            let one_more = timeout(PATIENCE, acknowledged.changed()).await;
            one_more
                .expect("the load goes on")
                .expect("the users are at work");
        }
    }

    pub(crate) async fn stop(self) -> Vec<Done> {
        self.stop.store(true, Ordering::Relaxed);
        self.users.join_all().await
    }
}

struct User {
    replicas: Arc<Replicas>,
    pictures: Arc<Vec<String>>,
    acknowledged: watch::Sender<u64>,
    login: Login,
    done: Done,
}

/// Rounds between two sign-ups.
const SIGN_UP_EVERY: usize = 16;

impl User {
    async fn work(mut self, stop: Arc<AtomicBool>) -> Done {
        let mut round = 0;
        while !stop.load(Ordering::Relaxed) {
            let picture = self.pictures[round % self.pictures.len()].clone();
            self.like(&picture, round < self.pictures.len()).await;
            self.comment(&picture, round).await;
            if round % SIGN_UP_EVERY == 0 {
                self.sign_up(round).await;
            }
            round += 1;
        }
        self.done
    }

    /// Likes a picture. In the second round the like is taken back and given again: it must still
    /// count once.
    async fn like(&mut self, picture: &str, is_new: bool) {
        let path = format!("/api/pictures/{picture}/like");
        if !is_new {
            self.replicas
                .insist(Some(&self.login), Method::DELETE, &path, None)
                .await;
            self.note();
        }
        self.replicas
            .insist(Some(&self.login), Method::PUT, &path, None)
            .await;
        self.note();
        if is_new {
            self.done.liked.push(picture.to_owned());
        }
    }

    async fn comment(&mut self, picture: &str, round: usize) {
        let text = format!("{} says {round}", self.login.name);
        let path = format!("/api/pictures/{picture}/comments");
        let comment = (picture.to_owned(), text.clone());
        let body = json!({"text": text});
        match self
            .replicas
            .send(Some(&self.login), Method::POST, &path, Some(&body))
            .await
        {
            Outcome::Acknowledged(_) => {
                self.done.comments.push(comment);
                self.note();
            }
            Outcome::Unknown => self.done.perhaps.push(comment),
            Outcome::Rejected(status, value) => panic!("a comment: {status} {value}"),
        }
    }

    async fn sign_up(&mut self, round: usize) {
        let name = format!("{}-{round}", self.login.name);
        self.replicas.sign_up(&name).await;
        self.done.signed_up.push(name);
        self.note();
    }

    fn note(&self) {
        self.acknowledged.send_modify(|sum| *sum += 1);
    }
}
