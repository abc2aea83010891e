//! An actor of the tree, whose messages and random numbers decide what it does.

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use greenroom_actor::{
    Actor, ActorRef, AsyncHandler, Backoff, BoxError, Cause, Context, Directive, Handler, Mailbox,
    Overflow, ReplyHandler, ReplyTo, Supervision, Terminated,
};

use crate::table::{Deed, MessageTable, Parcel};

/// Actors of one run, over all restarts.
const NODES_MAX: usize = 30;
const DEPTH_MAX: u32 = 3;

/// The state that all actors of a run share.
pub(crate) struct World {
    pub(crate) table: Arc<MessageTable>,
    pub(crate) random: Mutex<Rng>,
    pub(crate) nodes: Mutex<Vec<ActorRef<Node>>>,
}

impl World {
    pub(crate) fn pick<T: Copy>(&self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub(crate) fn below(&self, end: usize) -> usize {
        self.random
            .lock()
            .expect("nobody panics with it")
            .usize(..end)
    }

    pub(crate) fn anybody(&self) -> ActorRef<Node> {
        let nodes = self.nodes.lock().expect("nobody panics with it");
        let number = self.below(nodes.len());
        nodes[number].clone()
    }

    fn millis(&self, end: usize) -> Duration {
        Duration::from_millis(self.below(end) as u64)
    }

    pub(crate) fn supervision(&self) -> Supervision {
        let scope = [
            Supervision::one_for_one,
            Supervision::one_for_all,
            Supervision::rest_for_one,
        ];
        let directives = [(); 4].map(|()| {
            use Directive::{Escalate, Restart, Resume, Stop};
            self.pick(&[Restart, Restart, Restart, Resume, Resume, Stop, Escalate])
        });
        let backoff = Backoff {
            first: self.millis(5),
            ..Backoff::default()
        };
        // Not by the text: paths have numbers in them, which differ from run to run.
        let decide = move |failure: &greenroom_actor::Failure| match &failure.cause {
            Cause::Panicked(_) => directives[0],
            Cause::Error(_) => directives[1],
            Cause::Escalated(_) => directives[2],
            Cause::Linked(_) => directives[3],
        };
        self.pick(&scope)()
            .decide(decide)
            .intensity(self.below(4) as u32, Duration::from_millis(20))
            .backoff(backoff)
    }

    pub(crate) fn mailbox(&self) -> Mailbox {
        use Overflow::{BackPressure, DropNewest, DropOldest, Refuse};
        let overflow = self.pick(&[BackPressure, BackPressure, Refuse, DropNewest, DropOldest]);
        Mailbox::bounded(1 + self.below(4) as u32).overflow(overflow)
    }
}

pub(crate) struct Node {
    world: Arc<World>,
    depth: u32,
    /// It sets messages aside and gets notices, which do not count as waiting.
    is_wild: bool,
    kept: Vec<(Parcel, ReplyTo<u64>)>,
    number: u32,
}

impl Node {
    pub(crate) fn make(
        world: &Arc<World>,
        depth: u32,
    ) -> impl Fn() -> Self + Send + 'static + use<> {
        let world = Arc::clone(world);
        let is_wild = world.below(2) == 0;
        let number = 1_000 + world.below(1 << 20) as u32;
        move || {
            if world.below(20) == 0 {
                fail("the factory");
            }
            Self {
                world: Arc::clone(&world),
                depth,
                is_wild,
                kept: Vec::new(),
                number,
            }
        }
    }

    fn have_child(&self, context: &Context<Self>) {
        let mut nodes = self.world.nodes.lock().expect("nobody panics with it");
        if nodes.len() >= NODES_MAX {
            return;
        }
        let child = context
            .build(Self::make(&self.world, self.depth + 1))
            .mailbox(self.world.mailbox())
            .supervision(self.world.supervision());
        nodes.push(child.spawn().expect("the default dispatcher is there"));
    }

    fn begin(&self, parcel: &Parcel, context: &Context<Self>) {
        let me = context.myself();
        self.world.table.begin(me.id(), !self.is_wild, parcel);
    }

    fn parcel(&self, is_asked: bool) -> Parcel {
        let deeds = [
            Deed::Nothing,
            Deed::Nothing,
            Deed::Nothing,
            Deed::Panic,
            Deed::Stop,
        ];
        let deed = self.world.pick(&deeds);
        self.world.table.parcel(Some(self.number), is_asked, deed)
    }

    fn tell(&self) {
        let parcel = self.parcel(false);
        let number = parcel.number;
        if self.world.anybody().tell(Quick(parcel)).is_err() {
            self.world.table.give_back(number);
        }
    }

    fn pipe(&self, context: &mut Context<Self>) {
        let mut parcel = self.parcel(false);
        parcel.sender = None;
        let number = parcel.number;
        // A future that is dropped was no message yet.
        let table = Arc::clone(&self.world.table);
        let sleep = tokio::time::sleep(self.world.millis(3));
        let piped = async move {
            sleep.await;
            parcel
        };
        table.give_back(number);
        let message = move |parcel: Parcel| {
            table.take_back(number);
            Quick(parcel)
        };
        context.pipe(piped, message).expect("there are few");
    }

    fn remind(&self, context: &mut Context<Self>) {
        let mut parcel = self.parcel(false);
        parcel.sender = None;
        let number = parcel.number;
        // A timer that is cancelled was no message yet.
        self.world.table.give_back(number);
        context.once(self.world.millis(3), Reminder(parcel));
    }
}

fn fail(what: &'static str) -> ! {
    // Not by `panic!`: the panic hook would print panics that the test provokes.
    resume_unwind(Box::new(what))
}

impl Actor for Node {
    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        match self.world.below(30) {
            0 => return Err("not today".into()),
            1 => fail("started"),
            2 => tokio::time::sleep(self.world.millis(5)).await,
            _ => {}
        }
        for _ in 0..self.world.below(4) {
            if self.depth < DEPTH_MAX {
                self.have_child(context);
            }
        }
        Ok(())
    }

    async fn stopped(&mut self, _: &mut Context<Self>) {
        match self.world.below(20) {
            0 => fail("stopped"),
            1 => tokio::time::sleep(self.world.millis(5)).await,
            _ => {}
        }
    }
}

/// Handled at once.
pub(crate) struct Quick(pub(crate) Parcel);

impl Handler<Quick> for Node {
    type Reply = u64;

    fn handle(&mut self, Quick(mut parcel): Quick, context: &mut Context<Self>) -> u64 {
        let number = parcel.number;
        self.begin(&parcel, context);
        match parcel.deed {
            Deed::Panic => fail("a message"),
            Deed::GiveUp => context.fail("a report"),
            Deed::Stop => context.stop(),
            Deed::Unstash => context.unstash_all(),
            Deed::Tell => self.tell(),
            Deed::Pipe => self.pipe(context),
            Deed::Remind => self.remind(context),
            Deed::Link => context.link(&self.world.anybody()),
            Deed::Watch if self.is_wild => context.watch(&self.world.anybody()),
            Deed::Stash if self.is_wild => {
                parcel.deed = Deed::Nothing;
                self.world.table.postpone(&parcel);
                assert!(context.stash(Quick(parcel)).is_ok(), "the stash has room");
                return number;
            }
            _ => {}
        }
        self.world.table.finish(number);
        number
    }
}

/// Handled after a wait.
pub(crate) struct Slow(pub(crate) Parcel);

impl AsyncHandler<Slow> for Node {
    type Reply = u64;

    async fn handle(&mut self, Slow(parcel): Slow, context: &mut Context<Self>) -> u64 {
        self.begin(&parcel, context);
        let table = Arc::clone(&self.world.table);
        match parcel.deed {
            Deed::Wait => tokio::time::sleep(self.world.millis(4)).await,
            Deed::WaitAndPanic => {
                tokio::time::sleep(self.world.millis(4)).await;
                fail("a message after a wait");
            }
            Deed::Unstash => {
                context.unstash_all();
                tokio::task::yield_now().await;
            }
            Deed::Send => {
                let parcel = self.parcel(false);
                let number = parcel.number;
                let whom = self.world.anybody();
                let send = whom.send(Quick(parcel));
                // Given up with this handler, it has sent nothing.
                table.give_back(number);
                let in_time = tokio::time::timeout(self.world.millis(5), send).await;
                if matches!(in_time, Ok(Ok(()))) {
                    table.take_back(number);
                }
            }
            Deed::Ask => {
                let asked = self.parcel(true);
                let number = asked.number;
                let whom = self.world.anybody();
                let ask = whom.ask(Quick(asked));
                table.give_back(number);
                if ask.timeout(self.world.millis(5)).await.is_ok() {
                    table.take_back(number);
                }
            }
            _ => {}
        }
        table.finish(parcel.number);
        parcel.number
    }
}

/// Has its reply now, later, never, or from another actor.
pub(crate) struct Question(pub(crate) Parcel);

impl ReplyHandler<Question> for Node {
    type Reply = u64;

    fn handle(
        &mut self,
        Question(mut parcel): Question,
        reply: ReplyTo<u64>,
        context: &mut Context<Self>,
    ) {
        self.begin(&parcel, context);
        let number = parcel.number;
        match parcel.deed {
            Deed::Panic => fail("a question"),
            Deed::Keep => self.kept.push((parcel, reply)),
            Deed::Forward => {
                parcel.deed = Deed::Nothing;
                parcel.sender = None;
                self.world.table.postpone(&parcel);
                return self.world.anybody().forward(Question(parcel), reply);
            }
            _ => {
                for (kept, of_kept) in self.kept.drain(..) {
                    of_kept.send(kept.number);
                }
                reply.send(number);
            }
        }
        self.world.table.finish(number);
    }
}

/// The message of a timer.
pub(crate) struct Reminder(pub(crate) Parcel);

impl Handler<Reminder> for Node {
    type Reply = ();

    fn handle(&mut self, Reminder(parcel): Reminder, context: &mut Context<Self>) {
        self.world.table.take_back(parcel.number);
        self.begin(&parcel, context);
        self.world.table.finish(parcel.number);
    }
}

impl Handler<Terminated> for Node {
    type Reply = ();

    fn handle(&mut self, terminated: Terminated, _: &mut Context<Self>) {
        self.world.table.terminate(terminated.id);
    }
}
