//! Checks the resources that connections need against those of this machine, before anything is
//! tried.
//!
//! A run that would run out of descriptors or local ports is refused with the name of what it
//! lacks: half of it would measure the lack. Pure, except for [`Have::look`].

use trueload_drive::{Address, local_ports, open_files, raise_open_files};
use trueload_meter::Class;

use crate::failure::Failure;
use crate::protocol::GeneratePlan;

/// Descriptors for files that are opened briefly: each thread reads its own use now and then.
const FDS_SPARE: u64 = 8;

/// The resources of this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Have {
    /// The limit of open files, and those open now; none if sockets need none.
    pub(crate) fds: Option<(u64, u64)>,
    /// Local ports of one address; none if that is unknown.
    pub(crate) ports: Option<u32>,
}

impl Have {
    /// The resources of this process now, with sockets carried by `driver`.
    pub(crate) fn look(driver: &str) -> Self {
        let limit = raise_open_files();
        // Direct descriptors of a ring are not open files.
        let fds = (driver != "io_uring").then(|| (limit, open_files()));
        Have { fds, ports: local_ports() }
    }
}

/// Refuses more connections at this engine than there are descriptors or local ports for.
pub(crate) fn check(plan: &GeneratePlan, connections: u32, have: &Have) -> Result<(), Failure> {
    if let Some((limit, open)) = have.fds {
        let needed = u64::from(connections) + open + u64::from(plan.threads) + FDS_SPARE;
        if needed > limit {
            let message = format!(
                "{connections} connections need {needed} open files, and the limit is {limit}"
            );
            return Err(Failure::Short { class: Class::LocalFds.name(), message });
        }
    }
    let addresses = plan.origins.iter().flat_map(|origin| &origin.addresses);
    let over_tcp = plan.addresses.iter().chain(addresses).any(|to| matches!(to.0, Address::Ip(_)));
    let mut sources = plan.local_addresses.clone();
    sources.sort_unstable();
    sources.dedup();
    let sources = sources.len().max(1) as u32;
    match have.ports {
        Some(ports) if over_tcp && connections.div_ceil(sources) > ports => {
            let needed = connections.div_ceil(sources);
            let needs = match sources {
                1 => "one local address need as many ports".to_owned(),
                sources => format!("{sources} local addresses need {needed} ports of each"),
            };
            let message = format!("{connections} connections from {needs}, and there are {ports}");
            Err(Failure::Short { class: Class::LocalPorts.name(), message })
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines;
    use crate::protocol::ToEngine;

    fn plan(address: &str, sources: &str) -> GeneratePlan {
        let line = format!(
            r#"{{"type":"generate","protocol":1,"addresses":["{address}"],
            "local_addresses":[{sources}],"request":{{"method":"GET","path":"/","headers":[],
            "body_sha256":null}},"expect":{{"statuses":null,"body_sha256":null}},"connections":1,
            "pipeline":1,"close":false,"threads":2,"cpus":[],"timeout_ns":1,
            "connect_rate_per_s":1}}"#
        );
        match lines::parse(&line) {
            Ok(ToEngine::Generate(plan)) => *plan,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_lacking_is_named_before_anything_is_tried() {
        const TCP: &str = "127.0.0.1:80";
        let two = r#""127.0.0.2","127.0.0.3","127.0.0.2""#;
        let cases = [
            (TCP, "", 100, Some((130, 20)), Some(1000), None),
            (TCP, "", 101, Some((130, 20)), Some(1000), Some("local.fds")),
            (TCP, "", 5000, None, Some(5000), None),
            (TCP, "", 5001, None, Some(5000), Some("local.ports")),
            (TCP, two, 10_000, None, Some(5000), None),
            (TCP, two, 10_001, None, Some(5000), Some("local.ports")),
            (TCP, "", 5001, Some((100, 20)), Some(5000), Some("local.fds")),
            (TCP, "", 5001, None, None, None),
            ("unix:/a", "", 5001, None, Some(5000), None),
        ];
        for (address, sources, connections, fds, ports, lacking) in cases {
            let found = check(&plan(address, sources), connections, &Have { fds, ports });
            let class = found.err().map(|failure| failure.class());
            assert_eq!(class, lacking, "{connections} to {address} with {fds:?}, {ports:?}");
        }
    }
}
