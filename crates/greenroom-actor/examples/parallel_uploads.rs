//! Two uploads at the same time, and one reply when both are done. However many requests upload,
//! four pictures are on their way at a time.
//!
//! `cargo run -p greenroom-actor --example parallel_uploads`

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use greenroom_actor::{Actor, ActorRef, ActorSystem, AskError, Context, ReplyTo, messages};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

/// Pictures that are on their way at a time.
const UPLOADS_MAX: usize = 4;

struct Picture(&'static str);

/// Puts a picture on a server elsewhere; its address there.
async fn put(picture: Picture) -> String {
    sleep(Duration::from_millis(20)).await;
    format!("https://pictures.example/{}", picture.0)
}

struct Uploader {
    places: Arc<Semaphore>,
}

impl Uploader {
    fn new() -> Self {
        Self {
            places: Arc::new(Semaphore::new(UPLOADS_MAX)),
        }
    }
}

impl Actor for Uploader {}

#[messages]
impl Uploader {
    /// Replies with the address when the picture is there; the actor goes on meanwhile.
    #[message]
    fn upload(&mut self, picture: Picture, reply: ReplyTo<String>, context: &mut Context<Self>) {
        let places = Arc::clone(&self.places);
        let upload = async move {
            let _place = places.acquire().await;
            put(picture).await
        };
        let finished = |address| {
            reply.send(address);
            Finished {}
        };
        // With `PIPES_MAX` uploads under way this one is dropped, and who asked is told so.
        let _ = context.pipe(upload, finished);
    }

    /// An upload is over.
    #[message]
    fn finished(&mut self) {}
}

async fn upload_both(uploader: &ActorRef<Uploader>) -> Result<String, AskError> {
    let (first, second) = tokio::try_join!(
        uploader.upload(Picture("1.png")).ask(),
        uploader.upload(Picture("2.png")).ask(),
    )?;
    Ok(format!("Here are your pictures:\n{first}\n{second}"))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let uploader = ActorSystem::new()?.spawn(Uploader::new);
    let begin = Instant::now();
    let reply = upload_both(&uploader).await?;
    writeln!(io::stdout(), "{reply}\nafter {:?}", begin.elapsed())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn two_take_as_long_as_one_and_more_than_four_wait() {
        let uploader = ActorSystem::new().expect("a system").spawn(Uploader::new);
        let begin = Instant::now();
        let reply = upload_both(&uploader).await.expect("both are uploaded");
        assert!(reply.ends_with("/1.png\nhttps://pictures.example/2.png"));
        // The clock is paused: it moves by what is waited for, and nothing else.
        assert_eq!(begin.elapsed().as_millis(), 20);

        let begin = Instant::now();
        let requests = (0..4).map(|_| upload_both(&uploader));
        let replies = futures_util::future::join_all(requests).await;
        assert!(replies.iter().all(Result::is_ok));
        assert_eq!(begin.elapsed().as_millis(), 40);
    }
}
