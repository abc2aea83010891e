use std::any::TypeId;
use std::cell::RefCell;
use std::panic::resume_unwind;

use fastrand::Rng;

use crate::actor::Actor;
use crate::context::Context;

/// The faults of a test and their moments: see [the module](super).
///
/// A fault strikes when an actor is about to handle a message. Each rule counts, from 1, the
/// messages of its type that actors of its type are given.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    rules: Vec<Rule>,
}

/// A fault of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its handler panics before it begins.
    Panic,
    /// It is [killed](crate::ActorRef::kill) while it handles the message.
    Kill,
}

#[derive(Clone, Debug)]
struct Rule {
    /// The types of the actor and of the message; `None` for all.
    types: Option<(TypeId, TypeId)>,
    fault: Fault,
    when: When,
    seen: u64,
}

#[derive(Clone, Copy, Debug)]
enum When {
    Nth(u64),
    Chance(f64),
}

impl Faults {
    /// Creates an empty set of faults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an actor of type `A` panic at the `nth` message of type `M`, from 1.
    #[must_use]
    pub fn panic_at<A: Actor, M: 'static>(self, nth: u64) -> Self {
        self.rule(Some(types::<A, M>()), Fault::Panic, When::Nth(nth))
    }

    /// Makes an actor of type `A` panic at every message of type `M` with this probability, from 0
    /// to 1, by the seed.
    #[must_use]
    pub fn panic_by_chance<A: Actor, M: 'static>(self, probability: f64) -> Self {
        let when = When::Chance(probability);
        self.rule(Some(types::<A, M>()), Fault::Panic, when)
    }

    /// Kills an actor of type `A` while it handles the `nth` message of type `M`, from 1.
    #[must_use]
    pub fn kill_at<A: Actor, M: 'static>(self, nth: u64) -> Self {
        self.rule(Some(types::<A, M>()), Fault::Kill, When::Nth(nth))
    }

    /// Strikes the actor that is given the `step`th message of the test, from 1.
    #[must_use]
    pub fn at_step(self, step: u64, fault: Fault) -> Self {
        self.rule(None, fault, When::Nth(step))
    }

    /// Strikes every actor at every message with this probability, from 0 to 1, by the seed.
    #[must_use]
    pub fn by_chance(self, probability: f64, fault: Fault) -> Self {
        self.rule(None, fault, When::Chance(probability))
    }

    /// Arms the faults on this thread, until the guard is dropped.
    pub(super) fn arm(&self, seed: u64) -> Disarm {
        let rules = self.rules.clone();
        let random = Rng::with_seed(seed);
        let armed = (!rules.is_empty()).then_some(Armed { rules, random });
        ARMED.set(armed);
        Disarm
    }

    fn rule(mut self, types: Option<(TypeId, TypeId)>, fault: Fault, when: When) -> Self {
        self.rules.push(Rule {
            types,
            fault,
            when,
            seen: 0,
        });
        self
    }
}

fn types<A: Actor, M: 'static>() -> (TypeId, TypeId) {
    (TypeId::of::<A>(), TypeId::of::<M>())
}

thread_local! {
    static ARMED: RefCell<Option<Armed>> = const { RefCell::new(None) };
}

struct Armed {
    rules: Vec<Rule>,
    random: Rng,
}

impl Armed {
    fn next(&mut self, types: (TypeId, TypeId)) -> Option<Fault> {
        let Self { rules, random } = self;
        rules.iter_mut().fold(None, |struck, rule| {
            let is_due = rule.is_due(types, random);
            struck.or(is_due.then_some(rule.fault))
        })
    }
}

impl Rule {
    fn is_due(&mut self, types: (TypeId, TypeId), random: &mut Rng) -> bool {
        if self.types.is_some_and(|mine| mine != types) {
            return false;
        }
        self.seen += 1;
        match self.when {
            When::Nth(nth) => self.seen == nth,
            When::Chance(probability) => random.f64() < probability,
        }
    }
}

pub(super) struct Disarm;

impl Drop for Disarm {
    fn drop(&mut self) {
        ARMED.set(None);
    }
}

/// Strikes the actor that is about to handle a message, if a fault is due.
pub(crate) fn inject_fault<A: Actor, M: 'static>(context: &Context<A>) {
    let fault = ARMED.with_borrow_mut(|armed| armed.as_mut()?.next(types::<A, M>()));
    match fault {
        None => {}
        Some(Fault::Kill) => context.myself().kill(),
        // Not by `panic!`: the panic hook would print what the test wants to happen.
        Some(Fault::Panic) => {
            let message = std::any::type_name::<M>();
            resume_unwind(Box::new(format!("a fault of the test, at {message}")));
        }
    }
}
