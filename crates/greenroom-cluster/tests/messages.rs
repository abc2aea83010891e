//! Messages that `#[messages(remote = "…")]` makes of methods, and how their versions fit together.

#![deny(missing_docs, unreachable_pub, unused, unused_qualifications)]

use std::collections::BTreeMap;
use std::future;

use greenroom_actor::{Actor, ActorSystem, ReplyTo, marker, messages};
use greenroom_cluster::serde::Serialize;
use greenroom_cluster::serde::de::{DeserializeOwned, IgnoredAny};
use greenroom_cluster::{Remote, RemoteActor, RemoteCall, RemoteMessage};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Sends mail.
#[derive(Default)]
struct Mailer {
    sent: Vec<String>,
}

impl Actor for Mailer {}

#[messages(remote = "mailer.v1")]
impl Mailer {
    const WEIGHTS: usize = 2;

    /// Sends a mail.
    #[message(derive(Clone, Debug, PartialEq))]
    fn post(
        &mut self,
        /// The address.
        mut to: String,
        #[serde(rename = "cc", default)] copies: Vec<String>,
        weights: [u8; Self::WEIGHTS],
    ) -> Result<usize, String> {
        if to.is_empty() {
            return Err("no address".to_owned());
        }
        to.make_ascii_lowercase();
        self.sent.push(to);
        self.sent.extend(copies);
        let sum = weights
            .iter()
            .map(|weight| usize::from(*weight))
            .sum::<usize>();
        Ok(self.sent.len() + sum)
    }

    #[message]
    async fn r#try(&mut self, r#type: u8) -> u8 {
        future::ready(r#type).await
    }

    #[message(name = Waiting)]
    fn when_sent(&mut self, reply: ReplyTo<usize>) {
        reply.send(self.sent.len());
    }

    #[message]
    #[cfg(any())]
    fn left_out(&mut self, what: ThereIsNoSuchType) {}

    #[deprecated = "use `post`"]
    #[message]
    fn push(&mut self) {}
}

// That these are the types is what is tested: a call takes a cluster to be sent.
#[expect(dead_code, reason = "the compiler tests it")]
fn calls_by_reference(mailer: &Remote<Mailer>, albums: &Remote<newer::Album>) {
    use newer::RatedAlbumMessages;

    let (to, copies) = ("Ann".to_owned(), Vec::new());
    let _: RemoteCall<'_, Mailer, Post, marker::Sync> = mailer.post(to, copies, [0, 0]);
    let _: RemoteCall<'_, Mailer, Try, marker::Async> = mailer.r#try(1);
    let _: RemoteCall<'_, Mailer, Waiting, marker::Reply> = mailer.when_sent();
    let _: RemoteCall<'_, newer::Album, newer::Clear, marker::Sync> = albums.clear(3);
}

fn post() -> Post {
    Post {
        to: "Ann@example.org".to_owned(),
        copies: vec!["bob@example.org".to_owned()],
        weights: [1, 2],
    }
}

/// Returns what becomes of a message when another version of the code decodes it.
fn sent<T: DeserializeOwned>(message: &impl Serialize) -> Result<T, Box<dyn std::error::Error>> {
    let bytes = rmp_serde::to_vec_named(message)?;
    Ok(rmp_serde::from_slice(&bytes)?)
}

/// The names of a message's fields, in order, with whatever they hold.
type Fields = BTreeMap<String, Option<IgnoredAny>>;

fn name_of<M>(_: &M) -> &'static str
where
    Mailer: RemoteMessage<M>,
{
    <Mailer as RemoteMessage<M>>::NAME
}

#[test]
fn names_are_those_of_the_option_and_of_the_methods() {
    assert_eq!(<Mailer as RemoteActor>::NAME, "mailer.v1");
    assert_eq!(name_of(&post()), "post");
    assert_eq!(name_of(&Try { r#type: 1 }), "try");
    assert_eq!(name_of(&Waiting), "when_sent");
}

#[test]
fn a_message_is_a_map_of_its_fields_whose_attributes_hold() -> Outcome {
    assert_eq!(sent::<Post>(&post())?, post());
    let fields: Fields = sent(&post())?;
    assert!(fields.into_keys().eq(["cc", "to", "weights"]));
    let fields: Fields = sent(&Waiting)?;
    assert!(fields.is_empty());
    Ok(())
}

#[tokio::test]
async fn the_actor_itself_takes_the_same_messages() -> Outcome {
    let system = ActorSystem::new()?;
    let mailer = system.spawn(Mailer::default);
    let (to, weights) = ("Ann".to_owned(), [1, 0]);
    assert_eq!(mailer.post(to, Vec::new(), weights).ask().await?, Ok(2));
    assert_eq!(mailer.ask(post()).await?, Ok(6));
    assert_eq!(mailer.r#try(3).ask().await?, 3);
    Ok(())
}

mod older {
    use greenroom_actor::{Actor, messages};

    /// The photos of an album.
    #[derive(Default)]
    pub(super) struct Album(Vec<u64>);

    impl Actor for Album {}

    #[messages(remote = "album.v1")]
    impl Album {
        #[message]
        pub(super) fn add(&mut self, photo: u64) -> Vec<u64> {
            self.0.push(photo);
            self.0.clone()
        }

        #[message]
        pub(super) fn clear(&mut self) -> Vec<u64> {
            self.0.drain(..).collect()
        }
    }
}

mod newer {
    use greenroom_actor::{Actor, messages};

    /// The photos of an album, each with its stars.
    #[derive(Default)]
    pub(super) struct Album(Vec<(u64, u8)>);

    impl Actor for Album {}

    fn one() -> u8 {
        1
    }

    // The fields have other places than the older version's.
    #[messages(remote = "album.v1", remote_trait_name = RatedAlbumMessages)]
    impl Album {
        #[message]
        pub(super) fn add(
            &mut self,
            #[serde(default = "one")] stars: u8,
            photo: u64,
        ) -> Vec<(u64, u8)> {
            self.0.push((photo, stars));
            self.0.clone()
        }

        #[message]
        pub(super) fn clear(&mut self, #[serde(default)] keep_from: u8) -> Vec<(u64, u8)> {
            let is_removed = |(_, stars): &mut (u64, u8)| keep_from == 0 || *stars < keep_from;
            self.0.extract_if(.., is_removed).collect()
        }
    }
}

#[tokio::test]
async fn a_newer_version_takes_messages_without_its_new_fields() -> Outcome {
    let system = ActorSystem::new()?;
    let album = system.spawn(newer::Album::default);
    let add: newer::Add = sent(&older::Add { photo: 42 })?;
    assert_eq!(album.ask(add).await?, [(42, 1)]);
    let clear: newer::Clear = sent(&older::Clear)?;
    assert_eq!(album.ask(clear).await?, [(42, 1)]);
    Ok(())
}

#[tokio::test]
async fn an_older_version_takes_messages_with_fields_it_does_not_know() -> Outcome {
    let system = ActorSystem::new()?;
    let album = system.spawn(older::Album::default);
    let add: older::Add = sent(&newer::Add {
        stars: 5,
        photo: 42,
    })?;
    assert_eq!(album.ask(add).await?, [42]);
    let clear: older::Clear = sent(&newer::Clear { keep_from: 3 })?;
    assert_eq!(album.ask(clear).await?, [42]);
    Ok(())
}
