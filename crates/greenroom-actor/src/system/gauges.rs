//! Metrics that change with every actor: recorded once in a while instead.

use std::collections::BTreeMap;

use super::registry;

/// The gauges of all systems of the process.
///
/// Several systems, types or dispatchers may have one name, such as the dispatchers of pinned
/// actors: a gauge is the sum of theirs.
#[derive(Default)]
pub(crate) struct Gauges {
    /// The actors that are alive, by system and type.
    alive: BTreeMap<(String, &'static str), u64>,
    /// The actors that wait for a worker, by system and dispatcher.
    runnable: BTreeMap<(String, String), u64>,
}

impl Gauges {
    /// Records the gauges, and the time that workers were busy since the last time.
    pub(crate) fn record(&mut self) {
        self.count();
        for ((system, name), alive) in &self.alive {
            let labels = [("system", system.clone()), ("type", (*name).to_owned())];
            #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
            metrics::gauge!("greenroom_actor_alive", &labels).set(*alive as f64);
        }
        for ((system, name), runnable) in &self.runnable {
            let labels = [("system", system.clone()), ("dispatcher", name.clone())];
            #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
            metrics::gauge!("greenroom_actor_runnable", &labels).set(*runnable as f64);
        }
        // What is gone by the next time was recorded as nothing.
        self.alive.retain(|_, alive| *alive > 0);
        self.runnable.retain(|_, runnable| *runnable > 0);
    }

    fn count(&mut self) {
        self.alive.values_mut().for_each(|alive| *alive = 0);
        self.runnable
            .values_mut()
            .for_each(|runnable| *runnable = 0);
        for system in registry::systems() {
            for (name, counts) in system.types.counts() {
                let of_name = (system.name.clone(), name);
                *self.alive.entry(of_name).or_default() += counts.alive();
            }
            for core in system.cores() {
                let labels = [
                    ("system", system.name.clone()),
                    ("dispatcher", core.name.to_string()),
                ];
                metrics::counter!("greenroom_actor_busy_microseconds_total", &labels)
                    .increment(core.take_busy_micros());
                let of_name = (system.name.clone(), core.name.to_string());
                *self.runnable.entry(of_name).or_default() += core.runnable() as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    struct Twin<const NUMBER: usize>;

    impl<const NUMBER: usize> crate::Actor for Twin<NUMBER> {
        fn type_name() -> &'static str {
            "twin"
        }
    }

    #[test]
    fn a_gauge_is_the_sum_of_all_of_one_name_and_zero_before_it_is_gone() {
        testing::run(|system| async move {
            let of_twins = |gauges: &Gauges| {
                let mut twins = gauges.alive.iter().filter(|((_, name), _)| *name == "twin");
                twins.next().map(|(_, alive)| *alive)
            };
            let mut gauges = Gauges::default();
            let one = system.spawn(|| Twin::<1>);
            let other = system.spawn(|| Twin::<2>);
            gauges.record();
            assert_eq!(of_twins(&gauges), Some(2));
            one.kill();
            other.kill();
            system.settle().await;
            gauges.count();
            assert_eq!(of_twins(&gauges), Some(0));
            gauges.record();
            assert_eq!(of_twins(&gauges), None);
        });
    }
}
