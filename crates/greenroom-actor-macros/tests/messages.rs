//! Actors with `#[messages]`, sent to and asked.

#![deny(missing_docs, unreachable_pub)]

use std::fmt::Debug;
use std::future;
use std::vec;

use greenroom_actor::{Actor, ActorRef, ActorSystem, AsyncHandler, Context, ReplyTo, messages};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[derive(Default)]
struct Counter {
    value: u64,
    asking: Option<ReplyTo<u64>>,
}

impl Actor for Counter {}

#[messages]
impl Counter {
    const WEIGHTS: usize = 2;

    /// Adds to the value.
    #[message]
    fn add(&mut self, amount: u64) -> u64 {
        self.value += amount;
        if let Some(reply) = self.asking.take() {
            reply.send(self.value);
        }
        self.value
    }

    #[message]
    fn value(&self) -> u64 {
        self.value
    }

    /// Adds, if there is no overflow.
    #[message]
    async fn add_awaited(&mut self, amount: u64, _: &mut Context<Self>) -> Result<u64, String> {
        let amount = future::ready(amount).await;
        let sum = self.value.checked_add(amount);
        sum.map(|_| self.add(amount))
            .ok_or_else(|| "too much".to_owned())
    }

    #[message]
    fn next(&mut self, reply: ReplyTo<u64>) {
        self.asking = Some(reply);
    }

    #[message(name = Clear, derive(Clone, Debug, PartialEq))]
    fn reset(&mut self) {
        self.value = 0;
    }

    /// Has arguments with the names that the generated code uses.
    #[message(derive(Debug))]
    fn add_weighted(
        &mut self,
        /// The weight.
        mut message: Vec<u64>,
        reply: [u64; Self::WEIGHTS],
        _passed: &mut Context<Self>,
        context: fn(&u64) -> u64,
        r#type: &'static str,
    ) -> (u64, &'static str) {
        message.extend(reply);
        self.value += message.iter().map(context).sum::<u64>();
        (self.value, r#type)
    }

    #[message]
    fn absorb(&mut self, other: Box<Self>) {
        self.value += other.value;
    }

    #[message]
    fn sizes_of_futures(&mut self, context: &mut Context<Self>) -> (usize, usize) {
        let handled = size_of_val(&AsyncHandler::handle(
            self,
            AddAwaited { amount: 1 },
            context,
        ));
        (handled, size_of_val(&self.add_awaited(1, context)))
    }

    #[message]
    #[cfg(any())]
    fn left_out(&mut self, what: ThereIsNoSuchType) {}

    #[deprecated = "use `add`"]
    #[message]
    fn increase(&mut self) {
        self.value += 1;
    }

    #[message]
    #[expect(
        clippy::too_many_arguments,
        reason = "that this stays expected is what is tested"
    )]
    fn sum(&mut self, x1: u8, x2: u8, x3: u8, x4: u8, x5: u8, x6: u8, x7: u8) -> u8 {
        x1 + x2 + x3 + x4 + x5 + x6 + x7
    }
}

fn counter() -> Result<(ActorSystem, ActorRef<Counter>), Box<dyn std::error::Error>> {
    let system = ActorSystem::new()?;
    let counter = system.spawn(Counter::default);
    Ok((system, counter))
}

#[tokio::test]
async fn a_method_is_a_message_to_tell_to_send_and_to_ask() -> Outcome {
    let (_system, counter) = counter()?;
    counter.add(1).tell()?;
    counter.add(2).send().await?;
    assert_eq!(counter.add(4).ask().await?, 7);
    assert_eq!(counter.value().ask().await?, 7);
    Ok(())
}

#[tokio::test]
async fn the_message_can_be_written_out() -> Outcome {
    let (_system, counter) = counter()?;
    counter.tell(Add { amount: 1 })?;
    assert_eq!(counter.ask(Add { amount: 2 }).await?, 3);
    Ok(())
}

#[tokio::test]
async fn an_async_method_is_awaited() -> Outcome {
    let (_system, counter) = counter()?;
    assert_eq!(counter.add_awaited(3).ask().await?, Ok(3));
    let failed = counter.add_awaited(u64::MAX).ask().await?;
    assert_eq!(failed, Err("too much".to_owned()));
    Ok(())
}

#[tokio::test]
async fn an_async_handler_is_as_large_as_the_method() -> Outcome {
    let (_system, counter) = counter()?;
    let (handled, called) = counter.sizes_of_futures().ask().await?;
    assert_eq!(handled, called);
    Ok(())
}

#[tokio::test]
async fn a_method_with_reply_to_replies_when_it_likes() -> Outcome {
    let (_system, counter) = counter()?;
    let receiver = counter.clone();
    let next = tokio::spawn(async move { receiver.next().ask().await });
    tokio::task::yield_now().await;
    counter.add(5).tell()?;
    assert_eq!(next.await??, 5);
    Ok(())
}

#[tokio::test]
async fn options_name_the_struct_and_derive() -> Outcome {
    let (_system, counter) = counter()?;
    counter.add(1).tell()?;
    counter.reset().tell()?;
    counter.tell(Clear.clone())?;
    assert_eq!(counter.value().ask().await?, 0);
    assert_eq!(format!("{Clear:?}"), "Clear");
    Ok(())
}

#[tokio::test]
async fn arguments_keep_their_order_whatever_they_are_called() -> Outcome {
    let (_system, counter) = counter()?;
    let double: fn(&u64) -> u64 = |value| value * 2;
    let weighted = counter.add_weighted(vec![1], [2, 3], double, "type");
    assert_eq!(weighted.ask().await?, (12, "type"));
    let (message, reply) = (vec![1], [0, 0]);
    let weighted = AddWeighted {
        message,
        reply,
        context: double,
        r#type: "out",
    };
    assert_eq!(counter.ask(weighted).await?, (14, "out"));
    let other = Counter {
        value: 6,
        asking: None,
    };
    counter.absorb(Box::new(other)).tell()?;
    assert_eq!(counter.value().ask().await?, 20);
    assert_eq!(counter.sum(1, 2, 3, 4, 5, 6, 7).ask().await?, 28);
    Ok(())
}

#[tokio::test]
async fn a_deprecated_message_still_works() -> Outcome {
    let (_system, counter) = counter()?;
    #[expect(
        deprecated,
        reason = "that the reference's method is deprecated too is tested"
    )]
    let increase = counter.increase();
    increase.tell()?;
    assert_eq!(counter.value().ask().await?, 1);
    Ok(())
}

/// An actor that stores the last item, and some spare ones.
struct Store<T: Iterator, U, const N: usize> {
    last: Option<T::Item>,
    spare: [Option<U>; N],
}

impl<T, U, const N: usize> Actor for Store<T, U, N>
where
    T: Iterator<Item: Send> + Send + 'static,
    U: Send + 'static,
{
}

#[messages(trait_name = Storing, crate = ::greenroom_actor)]
impl<T: Iterator<Item: Send> + Send + 'static, U: Into<T::Item>, const N: usize> Store<T, U, N>
where
    U: Send + Debug + 'static,
    Self: Sized,
{
    #[message]
    fn put(&mut self, item: T::Item) -> Option<T::Item> {
        self.last.replace(item)
    }

    #[message]
    async fn fill(&mut self, spare: [Option<U>; N]) -> usize {
        self.spare = future::ready(spare).await;
        N
    }

    #[message]
    fn promote(&mut self) -> usize {
        for spare in self.spare.iter_mut().filter_map(Option::take) {
            self.last = Some(spare.into());
        }
        self.spare.len()
    }
}

#[tokio::test]
async fn an_actor_may_be_generic() -> Outcome {
    let system = ActorSystem::new()?;
    let store = system.spawn(|| Store::<vec::IntoIter<u64>, u32, 2> {
        last: None,
        spare: [None, None],
    });
    assert_eq!(store.put(1).ask().await?, None);
    assert_eq!(store.fill([Some(3), None]).ask().await?, 2);
    assert_eq!(store.promote().ask().await?, 2);
    let put = Put::<vec::IntoIter<u64>> { item: 4 };
    assert_eq!(store.ask(put).await?, Some(3));
    Ok(())
}

macro_rules! slot {
    ($actor:ty, $value:ty, $context:ty, $reply:ty) => {
        #[messages]
        impl $actor {
            #[message]
            fn replace(&mut self, value: $value, _: $context) -> $value {
                std::mem::replace(&mut self.0, value)
            }

            #[message]
            fn look(&self, reply: $reply) {
                reply.send(self.0);
            }
        }
    };
}

struct Slot(u8);

impl Actor for Slot {}

slot!(Slot, u8, &mut Context<Self>, ReplyTo<u8>);

#[tokio::test]
async fn types_may_come_from_another_macro() -> Outcome {
    let system = ActorSystem::new()?;
    let slot = system.spawn(|| Slot(1));
    assert_eq!(slot.replace(2).ask().await?, 1);
    assert_eq!(slot.look().ask().await?, 2);
    Ok(())
}

mod entrance {
    use greenroom_actor::{Actor, ActorSystem, messages};

    /// An actor with messages of several visibilities.
    #[derive(Default)]
    pub(super) struct Door {
        opened: u32,
    }

    impl Actor for Door {}

    #[messages]
    impl Door {
        #[message]
        pub(crate) fn open(&mut self) -> u32 {
            self.opened += 1;
            self.opened
        }

        #[message]
        pub(super) fn open_twice(&mut self) -> u32 {
            self.open();
            self.open()
        }

        #[message]
        fn close(&mut self) {
            self.opened -= 1;
        }
    }

    #[tokio::test]
    async fn a_private_message_is_sent_within_its_module() -> super::Outcome {
        let system = ActorSystem::new()?;
        let door = system.spawn(Door::default);
        door.open_twice().tell()?;
        door.close().tell()?;
        assert_eq!(door.open().ask().await?, 2);
        Ok(())
    }
}

#[tokio::test]
async fn there_is_a_trait_for_each_visibility() -> Outcome {
    use entrance::{Door, DoorMessages, SuperDoorMessages};

    let system = ActorSystem::new()?;
    let door = system.spawn(Door::default);
    assert_eq!(door.open().ask().await?, 1);
    assert_eq!(door.open_twice().ask().await?, 3);
    Ok(())
}
