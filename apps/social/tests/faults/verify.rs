//! The check that all that was acknowledged is there, and nothing twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::client::Replicas;
use super::load::{Done, PATIENCE};

/// Pause between two looks at what only the database knows.
const POLL: Duration = Duration::from_millis(50);

/// Checks likes and comments of each picture; returns the ends of their topics.
pub(crate) async fn check(
    replicas: &Replicas,
    pictures: &[String],
    done: &[Done],
) -> BTreeMap<String, u64> {
    let mut ends = BTreeMap::new();
    for picture in pictures {
        let (view, listed) = settled(replicas, picture).await;
        let likes = done
            .iter()
            .filter(|done| done.liked.contains(picture))
            .count();
        assert_eq!(view["likes"], likes, "likes of {picture}");
        assert_eq!(view["comments"], listed.len(), "comments on {picture}");
        check_comments(picture, &listed, done);
        let end = |name: &str| {
            view[name]
                .as_u64()
                .expect("a view says where its topics end")
        };
        ends.insert(format!("/picture/{picture}/likes"), end("likes_seq"));
        ends.insert(format!("/picture/{picture}/comments"), end("comments_seq"));
    }
    ends
}

/// Returns a picture and its comments, of one moment. A change without a response may still be
/// written meanwhile, and one whose writer failed is counted when the sweeper has finished it, so
/// it reads again until nothing is under way.
async fn settled(replicas: &Replicas, picture: &str) -> (Value, Vec<String>) {
    let deadline = Instant::now() + PATIENCE;
    let mut before = comments(replicas, picture).await;
    loop {
        let view = replicas.get(&format!("/api/pictures/{picture}")).await;
        let listed = comments(replicas, picture).await;
        let is_settled = listed == before && view["comments"] == listed.len();
        if is_settled || Instant::now() > deadline {
            return (view, listed);
        }
        before = listed;
        sleep(POLL).await;
    }
}

fn check_comments(picture: &str, listed: &[String], done: &[Done]) {
    let unique: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(
        unique.len(),
        listed.len(),
        "a comment on {picture} is there twice"
    );
    let here = |comments: &[(String, String)]| -> Vec<String> {
        let of_picture = comments.iter().filter(|(on, _)| on == picture);
        of_picture.map(|(_, text)| text.clone()).collect()
    };
    let acknowledged: BTreeSet<String> =
        done.iter().flat_map(|done| here(&done.comments)).collect();
    let perhaps: BTreeSet<String> = done.iter().flat_map(|done| here(&done.perhaps)).collect();
    for text in &acknowledged {
        assert!(
            unique.contains(text),
            "`{text}` was acknowledged and is lost"
        );
    }
    for text in listed {
        assert!(
            acknowledged.contains(text) || perhaps.contains(text),
            "nobody said `{text}`"
        );
    }
}

async fn comments(replicas: &Replicas, picture: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut after = String::new();
    loop {
        let page = replicas
            .get(&format!("/api/pictures/{picture}/comments?limit=60{after}"))
            .await;
        let comments = page["comments"].as_array().expect("a page has comments");
        let text = |comment: &Value| {
            comment["text"]
                .as_str()
                .expect("a comment has a text")
                .to_owned()
        };
        texts.extend(comments.iter().map(text));
        match page["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => return texts,
        }
    }
}
