//! So many messages or questions and nothing else, for callgrind to count the instructions of:
//! `valgrind --tool=callgrind cost queued 25000`, less the same with 5,000, by the difference.
//! `lab/results` has what was counted.

use std::time::Duration;

use greenroom_actor::{Actor, ActorRef, ActorSystem, AsyncHandler, Context, Handler};

type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// The number of messages by `tell` before one `ask`, which fit into the mailbox.
const BATCH: u64 = 512;
const PATIENCE: Duration = Duration::from_mins(10);

struct Callee;

impl Actor for Callee {}

struct Now(u64);

impl Handler<Now> for Callee {
    type Reply = u64;

    fn handle(&mut self, Now(number): Now, _: &mut Context<Self>) -> u64 {
        number
    }
}

/// Never replied to on the spot.
struct Later(u64);

impl AsyncHandler<Later> for Callee {
    type Reply = u64;

    async fn handle(&mut self, Later(number): Later, _: &mut Context<Self>) -> u64 {
        number
    }
}

struct Asker(ActorRef<Callee>);

impl Actor for Asker {}

struct AskNow(u64);

impl AsyncHandler<AskNow> for Asker {
    type Reply = Result<(), AnyError>;

    async fn handle(&mut self, AskNow(count): AskNow, _: &mut Context<Self>) -> Self::Reply {
        for number in 0..count {
            self.0.ask(Now(number)).await?;
        }
        Ok(())
    }
}

struct AskLater(u64);

impl AsyncHandler<AskLater> for Asker {
    type Reply = Result<(), AnyError>;

    async fn handle(&mut self, AskLater(count): AskLater, _: &mut Context<Self>) -> Self::Reply {
        for number in 0..count {
            self.0.ask(Later(number)).await?;
        }
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), AnyError> {
    let mut arguments = std::env::args().skip(1);
    let (Some(what), Some(count)) = (arguments.next(), arguments.next()) else {
        return Err("usage: cost tell|task|inline|queued COUNT".into());
    };
    let count: u64 = count.parse()?;
    let system = ActorSystem::new()?;
    let callee = system.spawn(|| Callee);
    let of_asker = callee.clone();
    let asker = system.spawn(move || Asker(of_asker.clone()));
    match what.as_str() {
        "tell" => {
            for _ in 0..count / BATCH {
                (0..BATCH)
                    .try_for_each(|number| callee.tell(Now(number)).map_err(|_| "it is full"))?;
                callee.ask(Now(0)).await?;
            }
        }
        "task" => {
            for number in 0..count {
                callee.ask(Now(number)).await?;
            }
        }
        "inline" => asker.ask(AskNow(count)).timeout(PATIENCE).await??,
        "queued" => asker.ask(AskLater(count)).timeout(PATIENCE).await??,
        other => return Err(format!("{other} is none of tell, task, inline, queued").into()),
    }
    Ok(())
}
