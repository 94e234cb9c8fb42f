//! Divides a plan with several origins into parts, and sums up the parts' results. Pure.
//!
//! Each origin has a plan of its own, with its addresses, TLS and targets. On every thread it has a
//! generator, a *part*. Parts are numbered by thread and origin, and report as threads do.

use std::sync::Arc;

use trueload_load::{Origins, dealt};
use trueload_meter::TargetMeter;

use crate::failure::{Failure, refuse_if, refused};
use crate::generator::{Config, Connected, DoneReport};
use crate::protocol::{GeneratePlan, OriginConnections, PhasePlan};
use crate::sums;

/// Most origins of one engine.
const ORIGINS_MOST: usize = 100;

/// The division of a plan over its origins.
#[derive(Debug)]
pub(crate) struct Division {
    pub(crate) order: Arc<Origins>,
    /// For each origin: the first of all threads to have a connection, so that small origins are
    /// not all on one thread.
    first_threads: Vec<u32>,
    /// Threads of all engines.
    threads: u32,
}

impl Division {
    /// The division of a plan; none for one origin.
    pub(crate) fn of(plan: &GeneratePlan) -> Result<Option<Self>, Failure> {
        if plan.origins.is_empty() {
            return Ok(None);
        }
        let weights: Vec<_> =
            plan.targets.iter().map(|target| (target.origin as usize, target.weight)).collect();
        let refused = || Failure::Plan("targets: each origin must have one, with a weight".into());
        let order = Origins::new(&weights).ok_or_else(refused)?;
        let threads = plan.threads.saturating_mul(plan.part.of);
        let before = |origin| order.connections_before(plan.connections, origin) % threads;
        let first_threads = (0..order.count()).map(before).collect();
        Ok(Some(Division { order: Arc::new(order), first_threads, threads }))
    }

    /// The number of a thread for one origin, among the threads of all engines.
    fn thread(&self, thread: u32, origin: u32) -> u32 {
        let first = self.first_threads[origin as usize];
        (thread + self.threads - first) % self.threads
    }

    /// The number of connections, out of `total`, that the parts of one origin have at this engine.
    fn slots_of(&self, plan: &GeneratePlan, total: u32, origin: u32) -> u32 {
        let connections = self.order.connections(total, origin);
        let own = (0..plan.threads).map(|thread| self.thread(plan.part.thread(thread), origin));
        own.map(|thread| dealt(connections, self.threads, thread)).sum()
    }

    /// A thread's configuration for one origin.
    pub(crate) fn config(&self, config: Config, origin: u32) -> Config {
        let places = Some(self.order.places(origin).clone());
        let (thread, origins) = (self.thread(config.thread, origin), self.order.count());
        Config { thread, origin, origins, places, ..config }
    }

    /// The plan of one origin: its addresses, TLS and targets, and its share of the connection
    /// rate.
    pub(crate) fn plan(&self, plan: &GeneratePlan, origin: u32) -> GeneratePlan {
        let own = &plan.origins[origin as usize];
        let rate = f64::from(plan.connect_rate_per_s) * self.order.part(origin);
        GeneratePlan {
            addresses: own.addresses.clone(),
            tls: own.tls.clone().map(Box::new),
            origins: Vec::new(),
            targets: plan
                .targets
                .iter()
                .filter(|target| target.origin == origin)
                .cloned()
                .collect(),
            connect_rate_per_s: (rate.round() as u32).max(1),
            ..plan.clone()
        }
    }

    /// Converts the reports of all parts to the form of threads' reports: the counts of a target at
    /// its place in the plan, and the time of a thread only once.
    pub(crate) fn join(&self, plan: &GeneratePlan, parts: &mut [(u32, DoneReport)]) {
        for (part, done) in parts.iter_mut() {
            let origin = *part % self.order.count();
            let own = std::mem::take(&mut done.meter.targets);
            done.meter.targets.resize_with(plan.targets.len(), TargetMeter::default);
            let places = plan.targets.iter().zip(&mut done.meter.targets);
            let places = places.filter(|(target, _)| target.origin == origin);
            places.zip(own).for_each(|((_, place), counted)| *place = counted);
            let of_plan = (0_u32..).zip(&plan.targets);
            let of_plan = of_plan.filter(|(_, target)| target.origin == origin);
            let of_plan: Vec<_> = of_plan.map(|(index, _)| index).collect();
            let rows = done.log.iter_mut().flat_map(|log| log.rows());
            rows.for_each(|row| row.target = of_plan[row.target as usize]);
        }
        for thread in 0..plan.threads {
            let these =
                || move |(part, _): &&mut (u32, DoneReport)| *part / self.order.count() == thread;
            let longest = parts.iter_mut().filter(these()).map(|(_, done)| done.stopped_ns).max();
            // No answer waited longer than the shortest wait that any origin allowed.
            let coalesced_ns = parts.iter_mut().filter(these()).map(|(_, done)| done.coalesced_ns);
            let coalesced_ns = coalesced_ns.min().unwrap_or(0);
            let mut found = false;
            for (_, done) in parts.iter_mut().filter(these()) {
                done.coalesced_ns = coalesced_ns;
                if found || Some(done.stopped_ns) != longest {
                    done.used = trueload_drive::ThreadUse::default();
                    done.spun_ns = 0;
                } else {
                    found = true;
                }
            }
        }
    }

    /// The connections of each origin, out of `total`.
    pub(crate) fn connections(
        &self,
        plan: &GeneratePlan,
        total: u32,
        set_up: &[(u32, Connected)],
        done: &[(u32, DoneReport)],
    ) -> Vec<OriginConnections> {
        let of = self.order.count();
        let sum = |origin: u32| {
            let tried = set_up.iter().filter(|(part, _)| part % of == origin);
            let failed: Vec<_> = tried.flat_map(|(_, found)| found.failed.clone()).collect();
            let ended = done.iter().filter(|(part, _)| part % of == origin);
            OriginConnections {
                requested: self.slots_of(plan, total, origin),
                established: ended.map(|(_, done)| done.established).sum(),
                failed: sums::by_class(&failed),
            }
        };
        (0..of).map(sum).collect()
    }
}

/// The number of connections, out of `total` over all engines, that a plan's engine has.
pub(crate) fn slots(plan: &GeneratePlan, division: Option<&Division>, total: u32) -> u32 {
    match division {
        None => plan.part.slots(total, plan.threads),
        Some(division) => {
            (0..division.order.count()).map(|origin| division.slots_of(plan, total, origin)).sum()
        }
    }
}

/// Refuses invalid origins, naming the field.
pub(crate) fn check(plan: &GeneratePlan) -> Result<(), Failure> {
    if let Some(target) =
        plan.targets.iter().position(|target| target.origin as usize >= plan.origins.len().max(1))
    {
        return refused(format_args!("targets[{target}].origin: there is none of this number"));
    }
    if plan.origins.is_empty() {
        return Ok(());
    }
    refuse_if!(plan.origins.len() > ORIGINS_MOST, "origins: must be at most {ORIGINS_MOST}");
    if !plan.addresses.is_empty() || plan.tls.is_some() {
        return refused("origins: have the addresses and TLS; the plan itself must have none");
    }
    if let Some(origin) = plan.origins.iter().position(|origin| origin.addresses.is_empty()) {
        return refused(format_args!("origins[{origin}].addresses: must name one"));
    }
    let targets =
        |origin: usize| plan.targets.iter().any(|target| target.origin as usize == origin);
    if let Some(origin) = (0..plan.origins.len()).find(|origin| !targets(*origin)) {
        return refused(format_args!("origins[{origin}]: has no target"));
    }
    check_connections(plan, plan.connections)
}

/// Refuses a phase that leaves an origin without a connection.
pub(crate) fn check_phase(plan: &GeneratePlan, phase: &PhasePlan) -> Result<(), Failure> {
    phase.connections.map_or(Ok(()), |connections| check_connections(plan, connections))
}

fn check_connections(plan: &GeneratePlan, connections: u32) -> Result<(), Failure> {
    let origins = plan.origins.len();
    refuse_if!(
        (connections as usize) < origins,
        "connections: must be at least {origins}, one for each origin"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lines;
    use crate::protocol::{PartPlan, ToEngine};

    fn plan(weights: &[u32], connections: u32, threads: u32, part: PartPlan) -> GeneratePlan {
        let expect = r#"{"statuses":null,"body_sha256":null}"#;
        let request = r#"{"method":"GET","path":"/","headers":[],"body_sha256":null}"#;
        let target = |(origin, weight): (usize, &u32)| {
            format!(
                r#"{{"name":null,"weight":{weight},"origin":{origin},
                "request":{request},"expect":{expect}}}"#
            )
        };
        let targets: Vec<_> = weights.iter().enumerate().map(target).collect();
        let origins = vec![r#"{"addresses":["127.0.0.1:80"],"tls":null}"#; weights.len()].join(",");
        let (targets, PartPlan { index, of, .. }) = (targets.join(","), part);
        let line = format!(
            r#"{{"type":"generate","protocol":1,"addresses":[],"origins":[{origins}],
            "local_addresses":[],"request":null,"expect":{expect},"targets":[{targets}],
            "connections":{connections},"pipeline":1,"close":false,"threads":{threads},"cpus":[],
            "timeout_ns":1,"connect_rate_per_s":1000,
            "part":{{"index":{index},"of":{of}}}}}"#
        );
        match lines::parse(&line) {
            Ok(ToEngine::Generate(plan)) => *plan,
            other => panic!("{other:?}"),
        }
    }

    fn division(plan: &GeneratePlan) -> Division {
        Division::of(plan).expect("a plan").expect("several origins")
    }

    proptest! {
        #[test]
        fn however_many_threads_and_engines_there_are_they_have_the_connections_of_one(
            weights in prop::collection::vec(1u32..30, 2..6),
            more in 0u32..200, later in 0u32..200, threads in 1u32..5, of in 1u32..5,
        ) {
            let connections = weights.len() as u32 + more;
            let one = plan(&weights, connections, 1, PartPlan::default());
            let parts: Vec<_> = (0..of)
                .map(|index| plan(&weights, connections, threads, PartPlan { index, of, more: Vec::new() }))
                .collect();
            for total in [connections, weights.len() as u32 + later] {
                for origin in 0..weights.len() as u32 {
                    let own = |plan: &GeneratePlan| division(plan).slots_of(plan, total, origin);
                    prop_assert_eq!(parts.iter().map(own).sum::<u32>(), own(&one));
                }
            }
            // At the start each engine has as many as with one origin.
            for part in &parts {
                let own = slots(part, Some(&division(part)), connections);
                prop_assert_eq!(own, slots(part, None, connections));
            }
        }
    }

    #[test]
    fn small_origins_are_not_all_on_one_thread() {
        let plan = plan(&[1, 1, 1, 1], 4, 4, PartPlan::default());
        let division = division(&plan);
        for thread in 0..4 {
            let has = (0..4).filter(|origin| division.thread(thread, *origin) == 0);
            assert_eq!(has.collect::<Vec<_>>(), [thread]);
        }
    }

    #[test]
    fn the_plan_of_an_origin_is_its_own_part() {
        let whole = plan(&[3, 1], 8, 1, PartPlan::default());
        let own = division(&whole).plan(&whole, 1);
        assert_eq!(own.addresses, whole.origins[1].addresses);
        assert_eq!(own.targets, whole.targets[1..]);
        assert_eq!((own.origins.len(), own.connect_rate_per_s), (0, 250));
    }

    #[test]
    fn a_thread_has_used_its_time_once_and_let_answers_wait_as_all_its_parts_agreed() {
        let plan = plan(&[1, 1], 4, 2, PartPlan::default());
        let report = |(part, stopped_ns, coalesced_ns)| {
            let used = trueload_drive::ThreadUse { cpu_ns: 100, ..Default::default() };
            let done = DoneReport { stopped_ns, coalesced_ns, used, ..DoneReport::default() };
            (part, done)
        };
        // Two parts of each of two threads, in the order in which they reported.
        let mut parts: Vec<_> =
            [(2, 7, 30_000), (0, 9, 0), (3, 8, 20_000), (1, 9, 40_000)].map(report).into();
        division(&plan).join(&plan, &mut parts);
        let found = parts.iter().map(|(part, done)| (*part, done.used.cpu_ns, done.coalesced_ns));
        let expected = [(2, 0, 20_000), (0, 100, 0), (3, 100, 20_000), (1, 0, 0)];
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn origins_that_cannot_be_had_are_refused_by_the_field() {
        let good = plan(&[3, 1], 2, 1, PartPlan::default());
        assert!(check(&good).is_ok());
        type Spoil = fn(&mut GeneratePlan);
        let cases: [(Spoil, &str); 7] = [
            (|plan| plan.connections = 1, "connections: must be at least 2, one for each origin"),
            (|plan| plan.targets[0].origin = 2, "targets[0].origin: there is none of this number"),
            (|plan| plan.targets[0].origin = 1, "origins[0]: has no target"),
            (|plan| plan.origins[1].addresses.clear(), "origins[1].addresses: must name one"),
            (
                |plan| plan.addresses = plan.origins[0].addresses.clone(),
                "origins: have the addresses",
            ),
            (
                |plan| plan.origins = vec![plan.origins[0].clone(); 101],
                "origins: must be at most 100",
            ),
            (|plan| plan.origins.clear(), "targets[1].origin: there is none of this number"),
        ];
        for (spoil, why) in cases {
            let mut plan = good.clone();
            spoil(&mut plan);
            let error = check(&plan).expect_err(why).to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
