//! Datagrams over both drivers against the kernel: boundaries, congestion marks, who sent what, and a peer that is not there.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::sync::mpsc;
use std::thread;

use trueload_drive::{
    Address, Conn, Datagrams, Listener, Net, Path, PeerClose, Program, Token, Transport,
};

use crate::shared::Kind;

/// The largest datagram over IPv4.
const LARGEST: usize = 65_507;

on_both_drivers! {
    boundaries_are_kept_both_ways
    a_congestion_mark_is_read_and_written
    a_peer_that_is_not_there_is_reported_and_not_waited_for
    datagrams_of_the_largest_size_arrive_whole_and_larger_ones_are_dropped
    one_socket_receives_from_many_peers_and_answers_each
    a_server_at_every_address_answers_from_the_one_that_was_asked
    what_is_larger_than_the_way_takes_whole_leaves_one_by_one
    a_closed_socket_receives_nothing_more
    what_a_full_queue_has_no_room_for_is_counted
}

on_both_drivers_watched! {
    boundaries_are_kept_both_ways
    a_congestion_mark_is_read_and_written
    a_peer_that_is_not_there_is_reported_and_not_waited_for
    datagrams_of_the_largest_size_arrive_whole_and_larger_ones_are_dropped
    one_socket_receives_from_many_peers_and_answers_each
    a_server_at_every_address_answers_from_the_one_that_was_asked
    what_is_larger_than_the_way_takes_whole_leaves_one_by_one
    a_closed_socket_receives_nothing_more
    what_a_full_queue_has_no_room_for_is_counted
}

fn any(at: impl Into<IpAddr>) -> Address {
    Address::Ip(SocketAddr::new(at.into(), 0))
}

fn ip(address: &Address) -> SocketAddr {
    match address {
        Address::Ip(address) => *address,
        Address::Unix(_) => unreachable!("datagrams go to IP addresses"),
    }
}

/// Datagrams to send together.
#[derive(Clone)]
struct Batch {
    bytes: Vec<u8>,
    segment_bytes: usize,
    ecn: u8,
}

impl Batch {
    /// Datagrams of these sizes, all but the last alike; each is of one byte, its number.
    fn of(sizes: &[usize]) -> Self {
        let numbered = sizes.iter().enumerate();
        let bytes = numbered.flat_map(|(at, size)| vec![at as u8; *size]).collect();
        Batch { bytes, segment_bytes: sizes[0], ecn: 0 }
    }

    fn datagrams(&self) -> Datagrams<'_> {
        let Batch { bytes, segment_bytes, ecn } = self;
        Datagrams { bytes, segment_bytes: *segment_bytes, ecn: *ecn, path: None }
    }
}

/// Sends what it has to one peer, and writes down what comes, until enough has or the peer is gone.
struct Caller {
    to: Address,
    batches: Vec<Batch>,
    enough: usize,
    received: Vec<Vec<u8>>,
    marks: Vec<u8>,
    ended: Option<PeerClose>,
    dropped: u64,
    token: Option<Token>,
}

impl Caller {
    fn new(to: SocketAddr, batches: Vec<Batch>, enough: usize) -> Self {
        let (received, marks, ended) = (Vec::new(), Vec::new(), None);
        Caller { to: to.into(), batches, enough, received, marks, ended, dropped: 0, token: None }
    }

    fn run(mut self, kind: Kind) -> Self {
        kind.run(None, &mut self);
        self
    }
}

impl Program for Caller {
    fn handle_wake(&mut self, net: &mut impl Net) {
        let token = net.connect(7, self.to.over(Transport::Datagram));
        self.token = Some(token.expect("a datagram socket connects to anything"));
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to a caller")
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        assert_eq!((conn.key, Some(conn.token)), (7, self.token));
        self.batches.iter().for_each(|batch| net.send_datagrams(conn.token, batch.datagrams()));
        self.dropped = net.dropped_datagrams();
    }

    fn handle_input(&mut self, _: &mut impl Net, _: Conn, _: &[u8], _: bool) {
        unreachable!("these are no streams")
    }

    fn handle_datagrams(&mut self, net: &mut impl Net, conn: Conn, came: Datagrams<'_>) {
        assert_eq!((conn.key, Some(conn.token), came.path), (7, self.token, None));
        self.received.extend(came.iter().map(<[u8]>::to_vec));
        self.marks.push(came.ecn);
        self.dropped = net.dropped_datagrams();
    }

    fn handle_end(&mut self, net: &mut impl Net, conn: Conn, ended: PeerClose) {
        self.ended = Some(ended);
        net.close(conn.token);
        net.send_datagrams(conn.token, Datagrams::one(b"nobody hears this"));
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.ended.is_some() || self.received.len() >= self.enough
    }
}

/// Returns every datagram with its mark to where it came from, until so many have come.
struct Server {
    left: usize,
    by_peer: BTreeMap<SocketAddr, usize>,
    locals: Vec<Option<IpAddr>>,
    bound: Option<Token>,
}

impl Server {
    fn new(left: usize) -> Self {
        Server { left, by_peer: BTreeMap::new(), locals: Vec::new(), bound: None }
    }
}

impl Program for Server {
    fn handle_wake(&mut self, _: &mut impl Net) {}

    fn handle_bound(&mut self, _: &mut impl Net, token: Token) -> u32 {
        self.bound = Some(token);
        3
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("datagrams are not accepted")
    }

    fn handle_input(&mut self, _: &mut impl Net, _: Conn, _: &[u8], _: bool) {
        unreachable!("these are no streams")
    }

    fn handle_datagrams(&mut self, net: &mut impl Net, conn: Conn, came: Datagrams<'_>) {
        assert_eq!((conn.key, Some(conn.token)), (3, self.bound));
        let Path { peer, local } = came.path.expect("a bound socket hears everybody");
        *self.by_peer.entry(peer).or_default() += came.count();
        self.locals.push(local);
        self.left = self.left.saturating_sub(came.count());
        net.send_datagrams(conn.token, came);
    }

    fn handle_end(&mut self, _: &mut impl Net, _: Conn, ended: PeerClose) {
        unreachable!("a bound socket does not end: {ended:?}")
    }

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }
}

/// A server of so many datagrams on a thread of its own.
fn serve(kind: Kind, at: &Address, datagrams: usize) -> (SocketAddr, thread::JoinHandle<Server>) {
    let listener = Listener::bind_datagrams(at, false).expect("a free port");
    let address = ip(listener.address());
    let server = thread::spawn(move || {
        let mut server = Server::new(datagrams);
        kind.run(Some(listener), &mut server);
        server
    });
    (address, server)
}

fn sorted(mut datagrams: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    datagrams.sort();
    datagrams
}

fn boundaries_are_kept_both_ways(kind: Kind) {
    for at in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
        for sizes in
            [vec![1], vec![0], vec![100; 64], vec![100; 65], vec![1200, 1200, 7], vec![3; 200]]
        {
            let (to, server) = serve(kind, &any(at), sizes.len());
            let batch = Batch::of(&sizes);
            let sent = batch.datagrams().iter().map(<[u8]>::to_vec).collect();
            let caller = Caller::new(to, vec![batch], sizes.len()).run(kind);
            let context = format!("{} of {} bytes at {at}", sizes.len(), sizes[0]);
            assert_eq!(sorted(caller.received), sorted(sent), "{context}");
            assert_eq!(caller.dropped, 0, "{context}");
            let server = server.join().expect("the server ends");
            assert_eq!(server.by_peer.values().sum::<usize>(), sizes.len(), "{context}");
        }
    }
}

fn a_congestion_mark_is_read_and_written(kind: Kind) {
    for at in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
        for ecn in 0..=3 {
            let (to, server) = serve(kind, &any(at), 2);
            let batch = Batch { ecn, ..Batch::of(&[10, 10]) };
            let caller = Caller::new(to, vec![batch], 2).run(kind);
            assert!(caller.marks.iter().all(|mark| *mark == ecn), "{:?} at {at}", caller.marks);
            server.join().expect("the server ends");
        }
    }
}

fn a_peer_that_is_not_there_is_reported_and_not_waited_for(kind: Kind) {
    for at in [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()] {
        let gone = UdpSocket::bind((at, 0)).expect("a free port");
        let to = gone.local_addr().expect("its address");
        drop(gone);
        // With two, the second send may be the one that learns of the first.
        for batches in [1, 2] {
            let caller = Caller::new(to, vec![Batch::of(&[8]); batches], 1).run(kind);
            assert_eq!(caller.ended, Some(PeerClose::Refused), "{batches} to {to}");
        }
    }
}

fn datagrams_of_the_largest_size_arrive_whole_and_larger_ones_are_dropped(kind: Kind) {
    let (to, server) = serve(kind, &any(Ipv4Addr::LOCALHOST), 2);
    let batches = [LARGEST + 1, LARGEST, 1].map(|size| Batch::of(&[size])).to_vec();
    let caller = Caller::new(to, batches, 2).run(kind);
    let sizes: Vec<_> = sorted(caller.received).iter().map(Vec::len).collect();
    assert_eq!(sizes, [1, LARGEST]);
    assert_eq!(caller.dropped, 1);
    server.join().expect("the server ends");
}

fn one_socket_receives_from_many_peers_and_answers_each(kind: Kind) {
    const PEERS: usize = 20;
    let (to, server) = serve(kind, &any(Ipv4Addr::LOCALHOST), 3 * PEERS);
    let peers: Vec<_> = (0..PEERS)
        .map(|number| {
            let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
            for part in 0..3 {
                peer.send_to(&[number as u8, part], to).expect("it leaves");
            }
            peer
        })
        .collect();
    for (number, peer) in peers.iter().enumerate() {
        let mut buffer = [0; 16];
        let mut parts = [0; 3].map(|_: u8| {
            let len = peer.recv(&mut buffer).expect("an answer");
            assert_eq!((len, buffer[0]), (2, number as u8));
            buffer[1]
        });
        parts.sort_unstable();
        assert_eq!(parts, [0, 1, 2]);
    }
    let by_peer = server.join().expect("the server ends").by_peer;
    let expected = peers.iter().map(|peer| (peer.local_addr().expect("its address"), 3)).collect();
    assert_eq!(by_peer, expected);
}

fn a_server_at_every_address_answers_from_the_one_that_was_asked(kind: Kind) {
    let (bound, server) = serve(kind, &any(Ipv4Addr::UNSPECIFIED), 1);
    let asked = Ipv4Addr::new(127, 0, 0, 9);
    let caller = Caller::new((asked, bound.port()).into(), vec![Batch::of(&[4])], 1).run(kind);
    // A connected socket receives no answer from another address.
    assert_eq!(caller.received, [vec![0; 4]]);
    assert_eq!(server.join().expect("the server ends").locals, [Some(asked.into())]);
}

/// Gives this thread, and those that it starts, a network of their own whose way takes so many bytes whole.
fn narrow_the_way(bytes: i32) -> std::io::Result<()> {
    let done = |result: i32| if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: the calls take numbers, and a request that lives through them; zeroes are a valid one.
    #[allow(unsafe_code)]
    unsafe {
        done(libc::unshare(libc::CLONE_NEWNET))
            .or_else(|_| done(libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET)))?;
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[..2].copy_from_slice(&[b'l' as _, b'o' as _]);
        request.ifr_ifru.ifru_mtu = bytes;
        done(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFMTU as _, &raw const request))?;
        request.ifr_ifru.ifru_flags = libc::IFF_UP as _;
        done(libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request))
    }
}

fn what_is_larger_than_the_way_takes_whole_leaves_one_by_one(kind: Kind) {
    let test = move || {
        if let Err(error) = narrow_the_way(1500) {
            return eprintln!("not tested: no network of our own: {error}");
        }
        let (to, server) = serve(kind, &any(Ipv4Addr::LOCALHOST), 10);
        // The kernel refuses to cut a block into datagrams that the way does not take, and takes each by itself.
        let batches = vec![Batch::of(&[1000; 3]), Batch::of(&[2000; 4]), Batch::of(&[1000; 3])];
        let caller = Caller::new(to, batches, 10).run(kind);
        let count = |size| caller.received.iter().filter(|datagram| datagram.len() == size).count();
        assert_eq!((count(1000), count(2000), caller.dropped), (6, 4, 0));
        server.join().expect("the server ends");
    };
    thread::spawn(test).join().expect("the test");
}

/// Closes its socket at the first datagram, and then opens another.
struct Closer {
    to: Address,
    received: usize,
    opened: usize,
}

impl Program for Closer {
    fn handle_wake(&mut self, net: &mut impl Net) {
        self.opened += 1;
        net.connect(0, self.to.over(Transport::Datagram)).expect("a socket");
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to it")
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        for number in 0..8 {
            net.send_datagrams(conn.token, Datagrams::one(&[number; 100]));
        }
    }

    fn handle_input(&mut self, _: &mut impl Net, _: Conn, _: &[u8], _: bool) {}

    fn handle_datagrams(&mut self, net: &mut impl Net, conn: Conn, _: Datagrams<'_>) {
        self.received += 1;
        net.finish(conn.token);
        net.send_datagrams(conn.token, Datagrams::one(b"nobody hears this"));
        if self.opened < 50 {
            self.handle_wake(net);
        }
    }

    fn handle_end(&mut self, _: &mut impl Net, _: Conn, _: PeerClose) {}

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.received >= 50
    }
}

fn a_closed_socket_receives_nothing_more(kind: Kind) {
    let (to, server) = serve(kind, &any(Ipv4Addr::LOCALHOST), 400);
    let mut closer = Closer { to: to.into(), received: 0, opened: 0 };
    kind.run(None, &mut closer);
    assert_eq!((closer.received, closer.opened), (50, 50), "one block for each socket");
    server.join().expect("the server ends");
}

/// Lets its peer flood it while it receives nothing, and then receives all that the kernel has
/// kept.
struct Flooded {
    to: Address,
    over: mpsc::Receiver<()>,
    received: u64,
    overflowed: u64,
    ended: bool,
}

impl Program for Flooded {
    fn handle_wake(&mut self, net: &mut impl Net) {
        net.connect(0, self.to.over(Transport::Datagram)).expect("a socket");
    }

    fn handle_accepted(&mut self, _: &mut impl Net, _: Token) -> u32 {
        unreachable!("nobody connects to it")
    }

    fn handle_connected(&mut self, net: &mut impl Net, conn: Conn) {
        net.send_datagrams(conn.token, Datagrams::one(b"flood"));
        net.hand_over();
        self.over.recv().expect("the flood is over");
    }

    fn handle_input(&mut self, _: &mut impl Net, _: Conn, _: &[u8], _: bool) {}

    fn handle_datagrams(&mut self, net: &mut impl Net, conn: Conn, came: Datagrams<'_>) {
        if self.received == 0 {
            net.send_datagrams(conn.token, Datagrams::one(b"end"));
        }
        self.received += came.count() as u64;
        self.ended |= came.iter().any(|datagram| datagram == b"end");
        self.overflowed = net.overflowed_datagrams();
    }

    fn handle_end(&mut self, _: &mut impl Net, _: Conn, _: PeerClose) {}

    fn handle_time(&mut self, _: &mut impl Net) {}

    fn wake_at_ns(&self) -> Option<u64> {
        None
    }

    fn is_done(&self) -> bool {
        self.ended
    }
}

fn what_a_full_queue_has_no_room_for_is_counted(kind: Kind) {
    // More than the 4 MiB that are asked for, which the kernel may double.
    const FLOOD: u64 = 10_000;
    let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let to = peer.local_addr().expect("its address").into();
    let (report, over) = mpsc::channel();
    let peer = thread::spawn(move || {
        let mut buffer = [0; 16];
        let (_, caller) = peer.recv_from(&mut buffer).expect("a caller");
        for _ in 0..FLOOD {
            peer.send_to(&[7; 2000], caller).expect("it leaves");
        }
        report.send(()).expect("it waits");
        peer.recv_from(&mut buffer).expect("it has room again");
        peer.send_to(b"end", caller).expect("it leaves");
    });
    let mut flooded = Flooded { to, over, received: 0, overflowed: 0, ended: false };
    kind.run(None, &mut flooded);
    peer.join().expect("the peer");
    assert!(flooded.overflowed > 0);
    assert_eq!(flooded.received + flooded.overflowed, FLOOD + 1);
}
