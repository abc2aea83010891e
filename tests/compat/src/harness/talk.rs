use tokio::sync::oneshot;
use tokio::time::timeout;

use super::case::Talk;
use super::server::{Kind, Running};
use super::{Case, Client, Ending, Log, PATIENCE, Step, Wire, rig};

/// Returns a client's log of the case's application as `kind` serves it.
pub(super) async fn transcript(case: &Case, kind: Kind) -> Log {
    let (rig, controls) = rig::pair();
    let (stop, stopped) = oneshot::channel();
    let server = Running::start(kind, case.app, rig, stopped).await;
    let mut client = Client::new(server.address, controls, stop);
    let talked = timeout(PATIENCE * 6, talk(&case.talk, &mut client)).await;
    if let Err(ending) = talked.unwrap_or(Err(Ending::Silent)) {
        client.say(ending.to_string());
    }
    let mut log = client.end();
    if !server.ends().await {
        log.push("the server does not end".to_owned());
    }
    log
}

async fn talk(talk: &Talk, client: &mut Client) -> Result<(), Ending> {
    match talk {
        Talk::Script(script) => script(client).await,
        Talk::Steps(steps) => {
            // There is no step to open the first connection: each begins with its first step.
            let mut kept = Vec::new();
            for steps in steps.split(|step| matches!(step, Step::Connect)) {
                kept.extend(converse(steps, client).await);
            }
            Ok(())
        }
    }
}

/// Takes these steps on a connection of their own, which is left open.
async fn converse(steps: &[Step], client: &mut Client) -> Option<Wire> {
    if steps.is_empty() {
        return None;
    }
    let mut wire = Some(client.connect().await);
    for step in steps {
        if let Err(ending) = take(step, &mut wire, client).await {
            client.say(ending.to_string());
            break;
        }
    }
    wire
}

async fn take(step: &Step, wire: &mut Option<Wire>, client: &mut Client) -> Result<(), Ending> {
    match step {
        Step::Leave => {
            *wire = None;
            return Ok(());
        }
        Step::Note => return client.note().await,
        Step::Release => {
            client.release();
            return Ok(());
        }
        _ => {}
    }
    let wire = wire.as_mut().ok_or(Ending::Closed)?;
    let log = &mut client.log;
    match step {
        Step::Bytes(count) => wire.bytes(*count, log).await,
        Step::Chunk => wire.chunk(log).await,
        Step::Close => wire.close().await,
        Step::End => wire.end(log).await,
        Step::Ended => wire.ended(log).await,
        Step::Head => wire.head(log).await.map(drop),
        Step::Rejection => wire.rejection(log).await,
        Step::Response => wire.response(log).await,
        Step::Rest => wire.rest(log).await,
        Step::Send(bytes) => wire.send(bytes).await,
        Step::Connect | Step::Leave | Step::Note | Step::Release => Ok(()),
    }
}
