//! A connection from a port to itself is no connection to a server: in a network of its own, where only one local port is
//! left and nobody listens on it. And where IPv6 is switched off, no port is lacking.

use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::Command;

use trueload_drive::{
    Address, Conn, ConnectError, Net, PeerClose, Program, Remote, Token, Transport,
};

use crate::shared::Kind;

const PORT: u16 = 41_000;
/// Set in the process that runs inside that network.
const INSIDE: &str = "TRUELOAD_TEST_INSIDE";

/// Connects a few times, and notes the results.
struct Caller {
    to: IpAddr,
    from: Option<IpAddr>,
    to_call: usize,
    results: Vec<Option<ConnectError>>,
}

impl Caller {
    fn call(&mut self, net: &mut impl Net) {
        let to = Address::Ip(SocketAddr::from((self.to, PORT)));
        while self.results.len() < self.to_call {
            match net.connect(0, Remote { from: self.from, ..to.over(Transport::Stream) }) {
                Ok(_) => return,
                Err(why) => self.results.push(Some(why)),
            }
        }
    }

    fn note(&mut self, net: &mut impl Net, what: Option<ConnectError>) {
        self.results.push(what);
        self.call(net);
    }
}

impl Program for Caller {
    fn handle_wake(&mut self, net: &mut impl Net) {
        self.call(net);
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to it")
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        net.reset(conn.token);
        self.note(net, None);
    }

    fn handle_connect_error(&mut self, net: &mut impl Net, _: Conn, why: ConnectError) {
        self.note(net, Some(why));
    }

    fn handle_input(&mut self, _: &mut impl Net, _: Conn, _: &[u8], _: bool) {
        unreachable!("it says nothing that could come back")
    }

    fn handle_end(&mut self, _: &mut impl Net, _: Conn, _: PeerClose) {
        unreachable!("nobody is there to end it")
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.results.len() >= self.to_call
    }
}

/// Runs this test once more in a network of its own, after commands that set it up; false when this process is the one inside it.
fn is_outside(test: &str, set_up: &str) -> bool {
    if env::var_os(INSIDE).is_some() {
        return false;
    }
    let set_up = format!("ip link set lo up && {set_up} && exec \"$@\"");
    // An ordinary user gets one where it may be root of a namespace of its own.
    let ways: [&[&str]; 2] = [&["--net"], &["--net", "--map-root-user"]];
    let works = |way: &&&[&str]| {
        let mut tried = Command::new("unshare");
        tried.args(**way).args(["ip", "link", "set", "lo", "up"]);
        tried.output().is_ok_and(|outcome| outcome.status.success())
    };
    let Some(way) = ways.iter().find(works) else {
        return skipped(test);
    };
    let own = env::current_exe().expect("this test");
    let inside = Command::new("unshare")
        .args(*way)
        .args(["sh", "-c", &set_up, "sh"])
        .arg(own)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .expect("it starts");
    let printed = String::from_utf8_lossy(&inside.stdout).into_owned();
    assert!(inside.status.success() && printed.contains("1 passed"), "{printed}");
    true
}

/// Adds a test to the list that `make test` sums up at its end; fails where nothing may be skipped, as in CI.
fn skipped(test: &str) -> bool {
    let name =
        if Command::new("ip").arg("-V").output().is_ok() { "namespaces" } else { "iproute2" };
    assert!(env::var_os("TEST_NEEDS").is_none_or(|needs| needs != "all"), "needs {name}");
    if let Some(list) = env::var_os("SKIPPED_TESTS") {
        let mut list = OpenOptions::new().create(true).append(true).open(list).expect("the list");
        let line = format!("{name} drive/{test}\n");
        list.write_all(line.as_bytes()).expect("the list is written");
    }
    true
}

fn nobody_connects_to_itself(kind: Kind) {
    let set_up = format!("echo '{PORT} {PORT}' > /proc/sys/net/ipv4/ip_local_port_range");
    if is_outside(&format!("{}::nobody_connects_to_itself", module(kind)), &set_up) {
        return;
    }
    let to = IpAddr::from(Ipv4Addr::LOCALHOST);
    for from in [None, Some(IpAddr::from(Ipv4Addr::LOCALHOST))] {
        let mut caller = Caller { to, from, to_call: 3, results: Vec::new() };
        kind.run(None, &mut caller);
        assert_eq!(caller.results, [Some(ConnectError::Refused); 3], "from {from:?}");
    }
}

fn ipv6_that_is_switched_off_is_no_lack_of_ports(kind: Kind) {
    let test = format!("{}::ipv6_that_is_switched_off_is_no_lack_of_ports", module(kind));
    if is_outside(&test, "echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6") {
        return;
    }
    for to in [Ipv6Addr::LOCALHOST, Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)] {
        let mut caller = Caller { to: to.into(), from: None, to_call: 2, results: Vec::new() };
        kind.run(None, &mut caller);
        assert_eq!(caller.results, [Some(ConnectError::NoSource); 2], "to {to}");
    }
}

/// The module of the tests of one driver.
fn module(kind: Kind) -> &'static str {
    if let Kind::Epoll = kind { "self_connect::on_epoll" } else { "self_connect::on_io_uring" }
}

on_both_drivers! { nobody_connects_to_itself ipv6_that_is_switched_off_is_no_lack_of_ports }
