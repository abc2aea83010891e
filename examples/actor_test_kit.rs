//! An actor, and its tests: a quarter of an hour passes in them within a millisecond.
//!
//! ```sh
//! cargo test -p greenroom-examples --bin actor_test_kit
//! cargo run -p greenroom-examples --bin actor_test_kit
//! curl -X POST http://127.0.0.1:5000/log-in/wrong
//! ```

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::{Router, routing::post};
use greenroom::actor::{Actor, ActorRef, ActorSystem, Context, messages};
use tokio::net::TcpListener;

const FAILURES_MAX: u32 = 3;
const LOCKED_FOR: Duration = Duration::from_mins(15);

/// Locks the door after three wrong passwords in a row. As it is an actor, two guesses at once
/// are counted one after the other, without a lock.
#[derive(Default)]
struct Door {
    failures: u32,
}

impl Actor for Door {}

#[messages]
impl Door {
    #[message]
    fn try_password(&mut self, password: String, context: &mut Context<Self>) -> StatusCode {
        if self.failures == FAILURES_MAX {
            return StatusCode::TOO_MANY_REQUESTS;
        }
        if password == "sesame" {
            self.failures = 0;
            return StatusCode::OK;
        }
        self.failures += 1;
        if self.failures == FAILURES_MAX {
            context.once(LOCKED_FOR, Unlock {});
        }
        StatusCode::FORBIDDEN
    }

    #[message]
    fn unlock(&mut self) {
        self.failures = 0;
    }
}

async fn log_in(State(door): State<ActorRef<Door>>, Path(password): Path<String>) -> StatusCode {
    let asked = door.try_password(password).ask().await; // within 5 s, or an error
    asked.unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let door = ActorSystem::new()?.spawn(Door::default);
    let app = Router::new()
        .route("/log-in/{password}", post(log_in))
        .with_state(door);

    let address = std::env::args().nth(1);
    let address = address.as_deref().unwrap_or("127.0.0.1:5000");
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    Ok(greenroom::serve(listener, app).await?)
}

#[cfg(test)]
mod tests {
    use greenroom_actor::testing; // greenroom-actor with the feature `test-kit`, for tests only

    use super::*;

    async fn guess(door: &ActorRef<Door>, password: &str) -> StatusCode {
        let reply = door.try_password(password.to_owned()).ask().await;
        reply.expect("the door replies")
    }

    #[test]
    fn a_locked_door_opens_after_a_quarter_of_an_hour() {
        testing::run(|system| async move {
            let door = system.spawn(Door::default);
            for _ in 0..FAILURES_MAX {
                assert_eq!(guess(&door, "wrong").await, StatusCode::FORBIDDEN);
            }
            system.advance(Duration::from_mins(14)).await;
            assert_eq!(guess(&door, "sesame").await, StatusCode::TOO_MANY_REQUESTS);
            system.advance(Duration::from_mins(1)).await;
            assert_eq!(guess(&door, "sesame").await, StatusCode::OK);
        });
    }

    #[test]
    fn no_order_of_guesses_lets_a_fourth_one_through() {
        // A hundred orders in which the messages may arrive; one that fails is named by its seed.
        testing::run_seeded(0..100, |system| async move {
            let door = system.spawn(Door::default);
            let guesses = (0..10).map(|_| guess(&door, "wrong"));
            let replies = futures_util::future::join_all(guesses).await;
            let counted = replies
                .iter()
                .filter(|reply| **reply == StatusCode::FORBIDDEN);
            assert_eq!(counted.count(), 3);
        });
    }
}
