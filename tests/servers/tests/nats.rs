//! The servers start, are killed, and run again where they were.

use std::net::TcpStream;

use greenroom_test_servers::{NatsCluster, NatsServer};

#[test]
fn a_server_is_there_until_it_is_killed_and_again_when_it_runs() {
    let mut server = NatsServer::settings().jet_stream().start();
    let connect = |server: &NatsServer| TcpStream::connect(("127.0.0.1", server.port()));
    assert!(connect(&server).is_ok());
    for end in [NatsServer::kill, NatsServer::stop] {
        end(&mut server);
        assert!(connect(&server).is_err());
        server.run();
        assert!(connect(&server).is_ok());
    }
    let streams = server.monitor("/jsz").expect("it runs");
    assert_eq!(streams["config"]["max_storage"], 1 << 30);
}

#[test]
fn a_cluster_has_a_leader_also_when_one_is_lost_and_back() {
    let settings = NatsServer::settings().jet_stream();
    let mut cluster = NatsCluster::start_with(&settings);
    cluster.servers[0].kill();
    cluster.servers[0].run();
    cluster.await_whole();
}
