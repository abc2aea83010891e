//! The event stream.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::time::Duration;

use greenroom_actor::{
    Actor, ActorRef, ActorSystem, AsyncHandler, Context, Dispatcher, Handler, Mailbox, Reason,
};
use tokio::sync::mpsc;

#[derive(Clone, Debug, PartialEq)]
struct Liked(u32);
#[derive(Clone, Debug, PartialEq)]
struct Commented(&'static str);

/// Keeps the events that it gets.
#[derive(Default)]
struct Diary {
    likes: Vec<u32>,
    comments: Vec<&'static str>,
}
impl Actor for Diary {}
impl Handler<Liked> for Diary {
    type Reply = ();
    fn handle(&mut self, Liked(picture): Liked, _: &mut Context<Self>) {
        self.likes.push(picture);
    }
}
impl Handler<Commented> for Diary {
    type Reply = ();
    fn handle(&mut self, Commented(text): Commented, _: &mut Context<Self>) {
        self.comments.push(text);
    }
}
struct Read;
impl Handler<Read> for Diary {
    type Reply = (Vec<u32>, Vec<&'static str>);
    fn handle(&mut self, _: Read, _: &mut Context<Self>) -> Self::Reply {
        (self.likes.clone(), self.comments.clone())
    }
}

/// Waits in its first message until it is let go.
struct Slow(mpsc::Receiver<()>);
impl Actor for Slow {
    fn mailbox() -> Mailbox {
        Mailbox::bounded(2)
    }
}
impl AsyncHandler<Liked> for Slow {
    type Reply = ();
    async fn handle(&mut self, _: Liked, _: &mut Context<Self>) {
        self.0.recv().await;
    }
}

fn slow(system: &ActorSystem) -> (ActorRef<Slow>, mpsc::Sender<()>) {
    let (gate, waits) = mpsc::channel(1);
    let waits = std::sync::Mutex::new(Some(waits));
    let slow = system.spawn(move || Slow(waits.lock().unwrap().take().unwrap()));
    (slow, gate)
}

#[tokio::test]
async fn every_subscriber_to_the_type_gets_the_event_in_order() {
    let system = ActorSystem::new().unwrap();
    let (both, likes) = (system.spawn(Diary::default), system.spawn(Diary::default));
    assert!(system.events().subscribe::<Liked>(both.recipient()));
    assert!(system.events().subscribe::<Commented>(both.recipient()));
    assert!(system.events().subscribe::<Liked>(likes.recipient()));
    assert_eq!(system.events().publish(Liked(1)), 2);
    assert_eq!(system.events().publish(Commented("nice")), 1);
    assert_eq!(system.events().publish(Liked(2)), 2);
    assert_eq!(system.events().publish("of no interest"), 0);
    assert_eq!(both.ask(Read).await.unwrap(), (vec![1, 2], vec!["nice"]));
    assert_eq!(likes.ask(Read).await.unwrap(), (vec![1, 2], vec![]));
}

#[tokio::test]
async fn who_subscribes_twice_gets_an_event_once() {
    let system = ActorSystem::new().unwrap();
    let diary = system.spawn(Diary::default);
    assert!(system.events().subscribe::<Liked>(diary.recipient()));
    assert!(!system.events().subscribe::<Liked>(diary.recipient()));
    assert_eq!(system.events().publish(Liked(1)), 1);
    assert_eq!(diary.ask(Read).await.unwrap().0, [1]);
}

#[tokio::test]
async fn who_unsubscribes_gets_no_more_events_of_that_type() {
    let system = ActorSystem::new().unwrap();
    let diary = system.spawn(Diary::default);
    system.events().subscribe::<Liked>(diary.recipient());
    system.events().subscribe::<Commented>(diary.recipient());
    system.events().publish(Liked(1));
    assert!(system.events().unsubscribe::<Liked>(diary.id()));
    assert!(!system.events().unsubscribe::<Liked>(diary.id()));
    assert_eq!(system.events().publish(Liked(2)), 0);
    assert_eq!(system.events().publish(Commented("nice")), 1);
    assert_eq!(diary.ask(Read).await.unwrap(), (vec![1], vec!["nice"]));
}

#[tokio::test]
async fn what_a_slow_subscriber_has_no_room_for_is_a_dead_letter_and_others_get_it() {
    let system = ActorSystem::new().unwrap();
    let ((slow, gate), diary) = (slow(&system), system.spawn(Diary::default));
    system.events().subscribe::<Liked>(slow.recipient());
    system.events().subscribe::<Liked>(diary.recipient());
    // Nothing runs before the next await: two fit into the slow one's mailbox.
    for picture in 0..10 {
        assert_eq!(system.events().publish(Liked(picture)), 2);
    }
    assert_eq!(system.dead_letters().count(Reason::MailboxFull), 8);
    assert_eq!(
        diary.ask(Read).await.unwrap().0,
        (0..10).collect::<Vec<_>>()
    );
    drop(gate);
    assert!(system.shutdown(Duration::from_secs(30)).await.is_clean());
}

#[tokio::test]
async fn a_subscriber_that_ended_is_forgotten() {
    let system = ActorSystem::new().unwrap();
    let (leaving, staying) = (system.spawn(Diary::default), system.spawn(Diary::default));
    system.events().subscribe::<Liked>(leaving.recipient());
    system.events().subscribe::<Liked>(staying.recipient());
    leaving.stop();
    leaving.terminated().await;
    assert_eq!(system.events().publish(Liked(1)), 1);
    assert!(!system.events().unsubscribe::<Liked>(leaving.id()));
    assert_eq!(system.dead_letters().total(), 0);
}

#[tokio::test]
async fn subscribers_that_ended_do_not_pile_up_where_nothing_is_published() {
    let system = ActorSystem::new().unwrap();
    let mut ended = Vec::new();
    for _ in 0..1_000 {
        let diary = system.spawn(Diary::default);
        system.events().subscribe::<Liked>(diary.recipient());
        diary.stop();
        diary.terminated().await;
        ended.push(diary.downgrade());
    }
    let kept = ended.iter().filter(|diary| diary.upgrade().is_some());
    assert!(kept.count() <= 8);
}

#[tokio::test]
async fn after_a_shutdown_nobody_is_subscribed() {
    let system = ActorSystem::new().unwrap();
    let diary = system.spawn(Diary::default);
    system.events().subscribe::<Liked>(diary.recipient());
    system.shutdown(Duration::from_secs(30)).await;
    let weak = diary.downgrade();
    drop(diary);
    assert!(weak.upgrade().is_none(), "nothing keeps its memory");
    assert_eq!(system.events().publish(Liked(1)), 0);
}

#[tokio::test]
async fn publishers_and_subscribers_on_many_threads_lose_nothing() {
    const EVENTS: u32 = 1_000;
    let builder = ActorSystem::builder().dispatcher("default", Dispatcher::pool(2));
    let system = builder.build().unwrap();
    let diary = system
        .build(Diary::default)
        .mailbox(Mailbox::bounded(4 * EVENTS))
        .spawn()
        .unwrap();
    system.events().subscribe::<Liked>(diary.recipient());
    std::thread::scope(|scope| {
        for publisher in 0..2 {
            let system = &system;
            scope.spawn(move || {
                for event in 0..EVENTS {
                    assert!(system.events().publish(Liked(2 * event + publisher)) > 0);
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..EVENTS {
                let passing = system.spawn(Diary::default);
                system.events().subscribe::<Liked>(passing.recipient());
                system.events().unsubscribe::<Liked>(passing.id());
                passing.stop();
            }
        });
    });
    let (likes, _) = diary.ask(Read).await.unwrap();
    for publisher in 0..2 {
        let events: Vec<_> = likes.iter().filter(|like| *like % 2 == publisher).collect();
        assert_eq!(events.len(), EVENTS as usize);
        assert!(events.is_sorted(), "in the order of their publisher");
    }
}
