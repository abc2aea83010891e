//! Other programs, which see the messages of NATS.

use greenroom_cluster::serde::Serialize;

use crate::counter::{BEGUN, GATES, LONG, host, server};

#[derive(Serialize)]
#[serde(crate = "greenroom_cluster::serde")]
struct Wait {
    gate: usize,
}

#[tokio::test(flavor = "multi_thread")]
async fn another_program_gets_the_reply_of_a_member_that_has_left() {
    let server = server();
    let host = host(&server, "one").await;
    let client = async_nats::connect(server.url()).await.expect("a client");
    let wait = rmp_serde::to_vec_named(&Wait { gate: 2 }).expect("it can be encoded");
    let request = async_nats::Request::new().payload(wait.into());
    let request = request.timeout(Some(LONG));
    let asked = tokio::spawn(async move {
        let subject = "greenroom.group.counters.wait.counter.v1";
        client.send_request(subject, request).await
    });
    let begun = BEGUN[2].acquire().await;
    begun.expect("it is open").forget();
    drop(host.publication);
    GATES[2].add_permits(1);
    let reply = asked.await.expect("it runs").expect("a reply");
    let name: String = rmp_serde::from_slice(&reply.payload).expect("a name");
    assert_eq!(name, "one");
}
