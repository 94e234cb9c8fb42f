//! Ends connections on which too little happens: a request's head stays half-sent, nothing comes at
//! all (if that was asked for), or the last bytes of an ended connection are not read.

use trueload_drive::Net;

use super::Server;
use super::connection::Connection;
use super::waits::Wait;
use super::watch::{HALF_NS, Overdue};

impl Server {
    /// Notes since when a head has been half-sent.
    #[inline]
    pub(super) fn note_half(&mut self, now_ns: u64, connection: &mut Connection) {
        if !connection.is_within_head() {
            connection.half_since_ns = 0;
        } else if connection.half_since_ns == 0 {
            connection.half_since_ns = now_ns.max(1);
            self.watch.look_again(connection.token, now_ns + HALF_NS);
        }
    }

    /// Ends connections on which a head has been half-sent, or nothing has come, for too long.
    pub(super) fn end_overdue(&mut self, net: &mut impl Net) {
        let now_ns = net.now_ns();
        for (token, why) in self.watch.overdue(now_ns) {
            let place = self.connections.get_mut(token.index as usize);
            let Some(connection) = place.and_then(|place| place.take_if(|of| of.is_served(token)))
            else {
                // It has ended, and its client does not read the last of it.
                net.close(token);
                continue;
            };
            let ends = match why {
                Overdue::Half => {
                    let since_ns = connection.half_since_ns;
                    since_ns > 0 && since_ns + HALF_NS <= now_ns
                }
                Overdue::Idle => connection.waiting() == 0 || connection.is_held(),
            };
            self.watch.seen.timed_out += u64::from(ends);
            self.begin_output(net, &connection);
            self.flush(net, connection, !ends);
        }
        let Server { watch, waits, connections, .. } = self;
        let open = |wait: &Wait| {
            let connection = connections.get(wait.index as usize).and_then(Option::as_ref);
            connection.filter(|connection| connection.token == wait.token())
        };
        watch.drop_past(net, |wait| open(wait).map(|open| open.half_since_ns + HALF_NS));
        waits.drop_past(|wait| open(wait).is_some_and(|open| open.waits_for(wait.stream)));
    }
}
